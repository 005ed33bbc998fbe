"""The report of a tokenizer: one self-contained HTML file for people.

facts.py gathers what is to be told, experiments.py tries what the pipeline did not, probes.py
explains how strings split, svg.py draws, sections.py writes each section and page.py puts them
together. Everything here only looks at results: nothing in the pipeline imports it.
"""
