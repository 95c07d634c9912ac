"""One table written as other programs would, in every format that is read."""

import csv
import gzip
import io
import json
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq

_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
    'content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    'relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.'
    'openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>{types}</Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
    'relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/'
    '2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
    "{sheets}</sheets></workbook>",
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/'
    '2006/relationships">{relations}</Relationships>',
}


def workbook(path, *sheets, hidden=(), merged=""):
    """A workbook of Excel, of which each sheet is a list of rows; None is an empty cell.

    The sheets are called S1, S2 ..., and those whose numbers are in `hidden` are hidden.
    `merged` are merged cells of each, as A2:A4.
    """
    numbers = range(1, len(sheets) + 1)
    filled = {
        "types": "".join(
            f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="application/vnd.'
            'openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
            for n in numbers
        ),
        "sheets": "".join(
            f'<sheet name="S{n}" sheetId="{n}" r:id="rId{n}"'
            f' state="{"hidden" if n in hidden else "visible"}"/>'
            for n in numbers
        ),
        "relations": "".join(
            f'<Relationship Id="rId{n}" Type="http://schemas.openxmlformats.org/officeDocument/2006'
            f'/relationships/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in numbers
        ),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in _PARTS.items():
            for key, value in filled.items():
                content = content.replace(f"{{{key}}}", value)
            archive.writestr(name, content)
        for number, rows in zip(numbers, sheets, strict=True):
            archive.writestr(f"xl/worksheets/sheet{number}.xml", _sheet(rows, merged))
    return path


def _sheet(rows, merged):
    text = ""
    joined = merged and f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>'
    for number, row in enumerate(rows, 1):
        cells = ""
        for letter, cell in zip("ABCDEFGHIJ", row, strict=False):
            if isinstance(cell, str):
                kept = f'<t xml:space="preserve">{escape(cell)}</t>'
                cells += f'<c r="{letter}{number}" t="inlineStr"><is>{kept}</is></c>'
            elif cell is not None:
                cells += f'<c r="{letter}{number}"><v>{cell}</v></c>'
        text += f'<row r="{number}">{cells}</row>'
    return (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        f"{text}</sheetData>{joined}</worksheet>"
    )


def delimited(header, rows, separator):
    lines = io.StringIO(newline="")
    csv.writer(lines, delimiter=separator).writerows([header, *rows])
    return lines.getvalue()


def zstd(content):
    return pa.compress(content, "zstd", asbytes=True)


def arrow_stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def arrow_file(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue().to_pybytes()


def _parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _list(objects):
    return json.dumps(objects, indent=2, ensure_ascii=False)


WRITERS = {
    "comma.csv": lambda h, r: delimited(h, r, ",").encode(),
    "semicolon.csv": lambda h, r: delimited(h, r, ";").encode(),
    "bar.csv": lambda h, r: delimited(h, r, "|").encode(),
    "tab.csv": lambda h, r: delimited(h, r, "\t").encode(),
    "tab.tsv": lambda h, r: delimited(h, r, "\t").encode(),
    "comma.tsv": lambda h, r: delimited(h, r, ",").encode(),
    "table.txt": lambda h, r: delimited(h, r, "\t").encode(),
    "excel_says.csv": lambda h, r: b"sep=;\r\n" + delimited(h, r, ";").encode(),
    "mark.csv": lambda h, r: delimited(h, r, ",").encode("utf-8-sig"),
    "utf16.csv": lambda h, r: delimited(h, r, "\t").encode("utf-16"),
    "utf16le.csv": lambda h, r: delimited(h, r, ",").encode("utf-16-le"),
    "utf32.csv": lambda h, r: delimited(h, r, ",").encode("utf-32"),
    "windows.csv": lambda h, r: delimited(h, r, ";").encode("cp1252"),
    "packed.csv.gz": lambda h, r: gzip.compress(delimited(h, r, ",").encode()),
    "unpacked.csv.gz": lambda h, r: delimited(h, r, ",").encode(),
    "packed.csv": lambda h, r: gzip.compress(delimited(h, r, ",").encode()),
    "packed.csv.zst": lambda h, r: zstd(delimited(h, r, ",").encode()),
    "lines.jsonl": lambda h, r: _lines(h, r).encode(),
    "lines.ndjson": lambda h, r: _lines(h, r).encode(),
    "lines.json": lambda h, r: _lines(h, r).encode(),
    "lines.csv": lambda h, r: _lines(h, r).encode(),
    "lines.jsonl.gz": lambda h, r: gzip.compress(_lines(h, r).encode("utf-16")),
    "list.json": lambda h, r: _list(_objects(h, r)).encode(),
    "list.jsonl": lambda h, r: _list(_objects(h, r)).encode(),
    "t.parquet": lambda h, r: _parquet(_arrow(h, r)),
    "parquet.csv": lambda h, r: _parquet(_arrow(h, r)),
    "t.arrow": lambda h, r: arrow_file(_arrow(h, r)),
    "t.feather": lambda h, r: arrow_file(_arrow(h, r)),
    "stream.arrow": lambda h, r: arrow_stream(_arrow(h, r)),
}
"""The bytes of a table of texts, from its header and its rows, by the names of files."""
NAMES = (*WRITERS, "t.xlsx", "workbook.csv")


def _objects(header, rows):
    return [dict(zip(header, row, strict=True)) for row in rows]


def _lines(header, rows):
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in _objects(header, rows))


def _arrow(header, rows):
    return pa.table(dict(zip(header, map(list, zip(*rows, strict=True)), strict=True)))


def write(folder, name, header, rows):
    """A file of this name with the table, all of whose cells are texts."""
    path = Path(folder) / name
    if name in WRITERS:
        path.write_bytes(WRITERS[name](header, rows))
        return path
    return workbook(path, [header, *rows])
