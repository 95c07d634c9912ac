"""Scores a table with Spark: each Python worker loads the model once.

python docs/examples/score_with_spark.py runs/tickets tickets.parquet scored.parquet
"""

import sys

from pyspark.sql import SparkSession

from gru_training.predict import RunScorer


def main(run: str, source: str, target: str) -> None:
    """Read Parquet, adds the answers, writes Parquet."""
    spark = SparkSession.builder.appName("scoring").getOrCreate()
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    tickets = spark.read.parquet(source)
    scorer = RunScorer(run)  # where the column is not called text: RunScorer(run, text="body")
    one_row = scorer(tickets.limit(1).toPandas())
    scored = tickets.mapInPandas(scorer.in_pandas, schema=spark.createDataFrame(one_row).schema)
    scored.write.mode("overwrite").parquet(target)
    scored = spark.read.parquet(target)
    scored.groupBy("label").count().orderBy("label").show()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
