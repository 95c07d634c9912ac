"""How columns with texts are called, so that nobody need name them."""

TEXT_COLUMNS = ("text", "sentence", "review", "content", "comment", "message", "document", "body")
