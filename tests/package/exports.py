#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""exports.py LIBRARY HEADER...: the shared library exports what the headers declare, no more and no less."""
import re
import subprocess
import sys

library, *headers = sys.argv[1:]
text = ""
for header in headers:
    with open(header, encoding="utf-8") as file:
        text += re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
declared = set(re.findall(r"^BATCHQR_API\b[^;(]*?(\w+)\s*\(", text, flags=re.MULTILINE))
table = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
exported = {line.split()[-1].split("@")[0] for line in table.splitlines()}

for name in sorted(declared - exported):
    print(f"declared, but not exported: {name}")
for name in sorted(exported - declared):
    print(f"exported, but not declared: {name}")
print(f"{len(declared)} declared, {len(exported)} exported")
sys.exit(not declared or declared != exported)
