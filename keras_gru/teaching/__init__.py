"""For people, not for models: traces, worked examples, a comparison of recurrent cells."""
