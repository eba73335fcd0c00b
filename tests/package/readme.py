#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""readme.py README PROGRAM: the README's first C program is the example of that name, which is built and run."""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    blocks = re.findall(r"^```c\n(.*?)^```$", file.read(), flags=re.DOTALL | re.MULTILINE)
with open(sys.argv[2], encoding="utf-8") as file:
    program = file.read().split("\n", 1)[1]  # without the line of the licence
if blocks[:1] != [program]:
    sys.exit(f"{sys.argv[1]}: its first C program differs from {sys.argv[2]}")
