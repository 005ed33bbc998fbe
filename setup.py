"""Builds the compiled kernel where there is a C compiler; all else is in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["src/bytepair/kernel/build.py:ffibuilder"])
