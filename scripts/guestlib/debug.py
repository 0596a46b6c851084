# SPDX-License-Identifier: MIT
"""gdb on the guest's kernel. Debian's image has no symbols, so they are made from the guest's own /proc/kallsyms; the module's
come with its debug info. Both are where they will be, because the kernel runs without address randomisation."""
import struct
import sys

from . import paths
from .paths import say

MODULE = "enpu.ko"


def write_symbols(args, open_session):
    """Boots a throw-away guest, asks it where everything lies, writes build/guest/{kernel.elf,gdbinit}."""
    folder = paths.BUILD / "guest"
    with open_session(args, module=True) as session:
        kernel = session.agent.check("grep -v '\\[' /proc/kallsyms", 60)
        sections = session.agent.check("cd /sys/module/enpu/sections 2>/dev/null && for s in .text .data .bss .rodata "
                                       ".init.text .exit.text; do [ -e $s ] && echo $s $(cat $s); done; true")
    write_elf(folder / "kernel.elf", parse_kallsyms(kernel))
    lines = ["set pagination off", "set architecture i386:x86-64", f"file {folder / 'kernel.elf'}"]
    where = dict(line.split() for line in sections.splitlines())
    if ".text" in where:
        rest = " ".join(f"-s {name} {address}" for name, address in where.items() if name != ".text")
        lines.append(f"add-symbol-file {folder / 'root' / MODULE} {where['.text']} {rest}")
    lines.append("target remote localhost:1234")
    (folder / "gdbinit").write_text("\n".join(lines) + "\n", encoding="utf-8")


def parse_kallsyms(text):
    for line in text.splitlines():
        address, kind, name = line.split()[:3]
        if int(address, 16) >= 1 << 63:
            yield int(address, 16), kind, name


def write_elf(path, symbols):
    """An ELF file with nothing but a symbol table (absolute symbols need no sections)."""
    strings, table = bytearray(b"\0"), bytearray(24)
    for address, kind, name in symbols:
        info = (1 << 4) | (2 if kind in "tTwW" else 1)
        table += struct.pack("<IBBHQQ", len(strings), info, 0, 1, address, 0)
        strings += name.encode() + b"\0"
    names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    at_table = 64
    at_strings = at_table + len(table)
    at_names = at_strings + len(strings)
    at_sections = (at_names + len(names) + 7) & ~7
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, at_sections, 0, 64, 0, 0, 64, 5, 4)
    base = 0xFFFFFFFF81000000
    sections = [bytes(64),
                struct.pack("<IIQQQQIIQQ", 1, 8, 6, base, 0, 0x7F000000 - 0x1000000, 0, 0, 16, 0),
                struct.pack("<IIQQQQIIQQ", 7, 2, 0, 0, at_table, len(table), 3, 1, 8, 24),
                struct.pack("<IIQQQQIIQQ", 15, 3, 0, 0, at_strings, len(strings), 0, 0, 1, 0),
                struct.pack("<IIQQQQIIQQ", 23, 3, 0, 0, at_names, len(names), 0, 0, 1, 0)]
    with open(path, "wb") as f:
        f.write(header + table + strings + names)
        f.write(bytes(at_sections - f.tell()) + b"".join(sections))


def wait_for_gdb(session):
    session.machine.qmp.hmp("gdbserver tcp::1234")
    session.machine.qmp.command("stop")
    say(f"the guest stands still and waits for gdb:\n    gdb -x {paths.BUILD / 'guest' / 'gdbinit'}\n"
        "set breakpoints (module functions too: it will be loaded at the same place), then 'continue'; the shell comes here")
    sys.stderr.flush()
