"""Names that would run a script in a page that took them for markup."""

HOSTILE = "<img src=x onerror=\"window.hacked='"
"""What follows says where it stood."""
HOSTILE_MODEL = f"{HOSTILE}model'\">"
CLASSES = (f"{HOSTILE}class'\">", "calm")
COLUMNS = ("load", f"</script><script>window.hacked='column'</script>{HOSTILE}c'\">")
