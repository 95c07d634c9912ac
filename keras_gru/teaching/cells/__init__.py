"""The recurrent cells that a trace goes through, each equation by equation of DERIVATION.md."""
