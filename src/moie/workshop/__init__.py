"""`moie studio`: a local page where a policy acts live and a person changes it by hand.

Python is the only authority on physics and policy; the page shows what it is told. Every page has a
`Session` in the server, with a `Workbench` (the draft, its history) and a process of its own that
simulates. Nothing is written before "Save".
"""
