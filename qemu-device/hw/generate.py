#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates the C headers and the tables of the data sheet from enpu.toml.

    generate.py            rewrites the generated files
    generate.py --check    fails, naming the file, when one of them differs from what is committed
"""
import pathlib
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HW_LICENCE = "(GPL-2.0-only WITH Linux-syscall-note) OR MIT"
SIZES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "f32": 4, "u64": 8}
ACCESS = {"ro": "read only", "rw": "read/write", "wo": "write only", "w1c": "write 1 to clear"}
DTYPE_ORDER = ["NONE", "F32", "F16", "BF16", "I8", "U8", "I32", "I64", "BOOL"]
OPERATOR_PARAM_BYTES = 112


def load():
    with open(HERE / "enpu.toml", "rb") as source:
        hw = tomllib.load(source)
    check_layout(hw)
    if [f["value"] for f in hw["fault"]] != list(range(len(hw["fault"]))):
        raise SystemExit("the kinds of faults are not numbered from 0 upwards")
    hw["enum"].append({"name": "fault_kind", "doc": "Faults that can be injected.",
                       "values": {f["name"]: f["value"] for f in hw["fault"]}})
    return hw


def field_bytes(field):
    return SIZES[field["type"]] * field.get("count", 1)


def check_layout(hw):
    """Sizes and alignments are part of the contract; a slip here must not reach a header."""
    for struct in hw["struct"]:
        check_fields(struct["name"], struct["fields"], 0, struct["size"])
    for packet in hw["packet"]:
        if "fields" in packet:
            check_fields(packet["name"], packet["fields"], 16, packet["size"])
    for op in hw["operator"]:
        used = check_fields(op["name"], op["params"], 0, None)
        if used > OPERATOR_PARAM_BYTES:
            raise SystemExit(f"{op['name']}: {used} bytes of parameters, at most {OPERATOR_PARAM_BYTES}")
    opcodes = [p["opcode"] for p in hw["packet"] + hw["operator"]]
    if len(set(opcodes)) != len(opcodes):
        raise SystemExit("two packets share an opcode")


def check_fields(name, fields, offset, size):
    for field in fields:
        if offset % SIZES[field["type"]]:
            raise SystemExit(f"{name}.{field['name']} is not aligned")
        offset += field_bytes(field)
    if size is not None and offset != size:
        raise SystemExit(f"{name}: fields end at {offset}, size says {size}")
    return offset


def bits_of(text):
    high, low = text.split(":")
    return int(high), int(low)


def mask_of(text):
    high, low = bits_of(text)
    return ((1 << (high - low + 1)) - 1) << low


def block_of(hw, reg):
    return next(b for b in hw["block"] if b["name"] == reg["block"])


def comment(text):
    return f" /* {text} */" if text else ""


# ------------------------------------------------------------------ enpu_hw.h
PROLOGUE = """\
/* SPDX-License-Identifier: {licence} */
/* Generated from qemu-device/hw/enpu.toml by generate.py; edit that file. */
#ifndef ENPU_HW_H
#define ENPU_HW_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/types.h>
typedef __u8 enpu_u8;
typedef __le16 enpu_u16;
typedef __le32 enpu_u32;
typedef __le32 enpu_s32;
typedef __le32 enpu_f32;
typedef __le64 enpu_u64;
#define ENPU_ASSERT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#else
#include <stdint.h>
typedef uint8_t enpu_u8;
typedef uint16_t enpu_u16;
typedef uint32_t enpu_u32;
typedef int32_t enpu_s32;
typedef float enpu_f32;
typedef uint64_t enpu_u64;
#ifdef __cplusplus
#define ENPU_ASSERT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#else
#define ENPU_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#endif
/* The kernel has FIELD_GET and FIELD_PREP; these are the same for everybody else. */
#define ENPU_FIELD_GET(mask, value) (((value) & (mask)) / ((mask) & ~((mask) << 1)))
#define ENPU_FIELD_PREP(mask, value) (((value) * ((mask) & ~((mask) << 1))) & (mask))
#endif
"""


def emit_header(hw):
    out = [PROLOGUE.format(licence=HW_LICENCE)]
    emit_constants(hw, out)
    emit_registers(hw, out)
    for group in hw["bits"]:
        out.append(f"/* {group['doc']} */")
        emit_masks(group["name"], group["fields"], 64 if group["name"] == "PTE" else 32, out)
        out.append("")
    for enum in hw["enum"]:
        emit_enum(enum["name"], enum["doc"], enum["values"], out)
    emit_faults(hw, out)
    opcodes = {p["name"]: p["opcode"] for p in hw["packet"] + hw["operator"]}
    emit_enum("opcode", "Packet opcodes.", opcodes, out)
    for struct in hw["struct"]:
        emit_struct(f"enpu_{struct['name']}", struct["doc"], struct["fields"], struct["size"], out)
    emit_packets(hw, out)
    out.append("#endif")
    return "\n".join(out) + "\n"


def emit_constants(hw, out):
    dev = hw["device"]
    out.append(f"#define ENPU_MAGIC 0x{dev['magic']:08x}u")
    for key in ("version_major", "version_minor"):
        out.append(f"#define ENPU_HW_{key.upper()} {dev[key]}u")
    for key in ("pci_vendor", "pci_device", "pci_class", "pci_revision"):
        out.append(f"#define ENPU_{key.upper()} 0x{dev[key]:04x}")
    out.append("")
    for const in hw["const"]:
        suffix = "ull" if const["value"] > 0xFFFFFFFF else "u"
        out.append(f"/* {const['doc']} */")
        out.append(f"#define ENPU_{const['name']} 0x{const['value']:x}{suffix}")
    out.append("")
    for bar in hw["bar"]:
        out.append(f"#define ENPU_BAR_{bar['name']} {bar['index']}{comment(bar['doc'])}")
        if bar["size"]:
            out.append(f"#define ENPU_BAR_{bar['name']}_SIZE 0x{bar['size']:x}u")
    out.append("")


def emit_registers(hw, out):
    for block in hw["block"]:
        out.append(f"/* {block['doc']} */")
        if block["count"] > 1:
            out.append(f"#define ENPU_{block['name']}_BASE 0x{block['base']:x}u")
            out.append(f"#define ENPU_{block['name']}_STRIDE 0x{block['stride']:x}u")
        if block["name"] == "COUNTER":
            out.append("#define ENPU_REG_COUNTER(as_id, word) "
                       "(ENPU_COUNTER_BASE + (as_id) * ENPU_COUNTER_STRIDE + (word) * 8u)")
        for reg in (r for r in hw["reg"] if r["block"] == block["name"]):
            emit_register(block, reg, out)
        out.append("")


def emit_register(block, reg, out):
    base, name = block["base"] + reg["offset"], reg["name"]
    note = comment(f"{ACCESS[reg['access']]}, {reg['width']} bit. {reg['doc']}")
    if block["count"] > 1:
        out.append(f"#define ENPU_REG_{name}(i) (0x{base:x}u + (i) * 0x{block['stride']:x}u){note}")
    elif reg.get("count", 1) > 1:
        out.append(f"#define ENPU_REG_{name}(i) (0x{base:x}u + (i) * {reg['width'] // 8}u){note}")
    else:
        out.append(f"#define ENPU_REG_{name} 0x{base:x}u{note}")
    emit_masks(name, reg.get("fields", []), reg["width"], out)


def emit_masks(prefix, fields, width, out):
    suffix = "ull" if width == 64 else "u"
    for field in fields:
        mask = mask_of(field["bits"])
        out.append(f"#define ENPU_{prefix}_{field['name']} 0x{mask:x}{suffix}{comment(field.get('doc'))}")


def emit_enum(name, doc, values, out):
    out.append(f"/* {doc} */")
    out.append(f"enum enpu_{name} {{")
    out += [f"\tENPU_{name.upper()}_{key} = {value}," for key, value in values.items()]
    out.append("};\n")


def text_name(name):
    """The name in text interfaces."""
    return name.lower().replace("_", "-")


def emit_faults(hw, out):
    kinds = hw["fault"]
    out.append(f"#define ENPU_FAULT_KINDS {len(kinds)}u")
    out.append("/* Initialisers of arrays of strings, by kind: its name in text, and what FAULT_TARGET numbers. */")
    for macro, texts in (("NAMES", [text_name(f["name"]) for f in kinds]), ("TARGETS", [f.get("target", "") for f in kinds])):
        rows = [", ".join(f'"{t}"' for t in texts[i:i + 6]) for i in range(0, len(texts), 6)]
        out.append(f"#define ENPU_FAULT_KIND_{macro} {{ \\\n\t" + ", \\\n\t".join(rows) + " }")
    out.append("")


def emit_struct(name, doc, fields, size, out):
    out.append(f"/* {doc} */")
    out.append(f"struct {name} {{")
    out += [member(field) for field in fields]
    out.append("};")
    if size is not None:
        out.append(f"ENPU_ASSERT_SIZE(struct {name}, {size});")
    out.append("")


def member(field):
    array = f"[{field['count']}]" if field.get("count", 1) > 1 else ""
    return f"\tenpu_{field['type']} {field['name']}{array};{comment(field.get('doc'))}"


def emit_packets(hw, out):
    for packet in hw["packet"]:
        if "fields" not in packet:
            continue
        name = f"enpu_{packet['name'].lower()}_packet"
        out.append(f"/* {packet['doc']} */")
        out.append(f"struct {name} {{")
        out.append("\tstruct enpu_packet header;")
        out += [member(field) for field in packet["fields"]]
        out.append(f"}};\nENPU_ASSERT_SIZE(struct {name}, {packet['size']});\n")
    for op in hw["operator"]:
        if op["params"]:
            emit_struct(f"enpu_{op['name'].lower()}_params", op["doc"], op["params"], None, out)
        operands = [o.rstrip("?").upper() for o in op["operands"]]
        out.append(f"enum enpu_{op['name'].lower()}_operand {{")
        out += [f"\tENPU_{op['name']}_OPERAND_{o} = {i}," for i, o in enumerate(operands)]
        out.append(f"\tENPU_{op['name']}_OPERANDS = {len(operands)},\n}};\n")
    out.append(f"#define ENPU_OPERATOR_PARAM_BYTES {OPERATOR_PARAM_BYTES}u")
    out.append("/* Every operator packet: header, parameters, then the operands of its opcode as tensor descriptors. */")
    out.append("struct enpu_operator_packet {\n\tstruct enpu_packet header;\n\tunion {")
    out.append("\t\tenpu_u64 raw[ENPU_OPERATOR_PARAM_BYTES / 8];")
    for op in hw["operator"]:
        if op["params"]:
            out.append(f"\t\tstruct enpu_{op['name'].lower()}_params {op['name'].lower()};")
    out.append("\t} params; /* bytes past the parameters of the opcode must be 0 */\n\tstruct enpu_tensor operands[];\n};")
    out.append("#define ENPU_OPERATOR_PACKET_BYTES(operands) (128u + 96u * (operands))\n")


# ------------------------------------------------------------------ enpu_hw_tables.h
TABLES_PROLOGUE = """\
/* SPDX-License-Identifier: {licence} */
/* Generated from qemu-device/hw/enpu.toml by generate.py; edit that file.
 * Names, resets, masks and operands for the model, the packet rules, the register tool and the bring-up harness. */
#ifndef ENPU_HW_TABLES_H
#define ENPU_HW_TABLES_H
#include "enpu_hw.h"

struct enpu_field_info {{ const char *name; uint64_t mask; }};
enum enpu_access_kind {{ ENPU_RO, ENPU_RW, ENPU_WO, ENPU_W1C }};
struct enpu_reg_info {{
    const char *name;
    uint32_t offset; /* of the first one */
    uint32_t stride, count;
    uint8_t bytes, access, is_volatile;
    uint64_t reset; /* meaningful when not volatile and has_reset */
    uint8_t has_reset;
    const struct enpu_field_info *fields; /* ends with a NULL name */
}};
struct enpu_operand_info {{ const char *name; uint8_t optional; }};
struct enpu_opcode_info {{
    const char *name;
    uint8_t exists, is_operator, num_operands;
    uint16_t packet_bytes; /* 0: header only */
    uint16_t param_bytes;
    uint32_t dtypes; /* bit d: enum enpu_dtype d */
    struct enpu_operand_info operands[ENPU_MAX_OPERANDS];
}};
struct enpu_name {{ const char *name; uint32_t value; }};
struct enpu_fault_info {{ const char *name, *target, *event, *effect, *argument; }}; /* empty: none */
"""


def emit_tables(hw):
    out = [TABLES_PROLOGUE.format(licence=HW_LICENCE)]
    for reg in hw["reg"]:
        if reg.get("fields"):
            rows = ", ".join(f'{{"{f["name"]}", 0x{mask_of(f["bits"]):x}ull}}' for f in reg["fields"])
            out.append(f"static const struct enpu_field_info enpu_fields_{reg['name'].lower()}[] = "
                       f"{{{rows}, {{0, 0}}}};")
    out.append("\nstatic const struct enpu_reg_info enpu_registers[] = {")
    out += [register_row(hw, reg) for reg in hw["reg"]]
    out.append("};\n#define ENPU_NUM_REGISTERS (sizeof(enpu_registers) / sizeof(enpu_registers[0]))\n")
    for enum in hw["enum"]:
        rows = ", ".join(f'{{"{key}", {value}}}' for key, value in enum["values"].items())
        out.append(f"static const struct enpu_name enpu_{enum['name']}_names[] = {{{rows}, {{0, 0}}}};")
    out.append("\nstatic const struct enpu_fault_info enpu_faults[] = {")
    out += [fault_row(fault) for fault in hw["fault"]]
    out.append("};")
    out.append("\nstatic const struct enpu_opcode_info enpu_opcodes[ENPU_MAX_OPCODES] = {")
    by_code = {p["opcode"]: p for p in hw["packet"] + hw["operator"]}
    # A C++ array initialiser has no designators out of order: every code has its row.
    out += [opcode_row(by_code.get(code), code) for code in range(64)]
    out.append("};\n\n#endif")
    return "\n".join(out) + "\n"


def fault_row(fault):
    texts = [text_name(fault["name"])] + [fault.get(key, "") for key in ("target", "event", "effect", "arg")]
    return "    {" + ", ".join(f'"{text}"' for text in texts) + "},"


def place_of(hw, reg):
    """(offset of the first, stride, count)"""
    block = block_of(hw, reg)
    offset = block["base"] + reg["offset"]
    if block["count"] > 1:
        return offset, block["stride"], block["count"]
    return offset, reg["width"] // 8, reg.get("count", 1)


def register_row(hw, reg):
    offset, stride, count = place_of(hw, reg)
    fields = f"enpu_fields_{reg['name'].lower()}" if reg.get("fields") else "0"
    has_reset = int("reset" in reg or reg["access"] == "rw")
    return (f'    {{"{reg["name"]}", 0x{offset:x}, 0x{stride:x}, {count}, '
            f'{reg["width"] // 8}, ENPU_{reg["access"].upper()}, {int(reg.get("volatile", False))}, '
            f'0x{reg.get("reset", 0):x}ull, {has_reset}, {fields}}},')


def opcode_row(packet, code):
    if packet is None:
        return f"    {{0, 0, 0, 0, 0, 0, 0, {{{{0, 0}}}}}}, /* {code} */"
    operands = packet.get("operands", [])
    infos = ", ".join(f'{{"{o.rstrip("?")}", {int(o.endswith("?"))}}}' for o in operands) or "{0, 0}"
    dtypes = sum(1 << DTYPE_ORDER.index(d) for d in packet.get("dtypes", []))
    params = sum(field_bytes(f) for f in packet.get("params", []))
    size = 128 + 96 * len(operands) if operands else packet.get("size", 16)
    return (f'    {{"{packet["name"]}", 1, {int(bool(operands))}, {len(operands)}, {size}, {params}, '
            f"0x{dtypes:x}, {{{infos}}}}}, /* {code} */")


# ------------------------------------------------------------------ enpu_hw_registers.h
REGISTERS_PROLOGUE = """\
/* SPDX-License-Identifier: {licence} */
/* Generated from qemu-device/hw/enpu.toml by generate.py; edit that file.
 * R(NAME, offset, stride, count, bytes, access) for each register, for code that has no room for names. */
#ifndef ENPU_HW_REGISTERS_H
#define ENPU_HW_REGISTERS_H

#define ENPU_REGISTER_LIST(R) \\
"""


def emit_register_list(hw):
    rows = []
    for reg in hw["reg"]:
        offset, stride, count = place_of(hw, reg)
        rows.append(f'\tR({reg["name"]}, 0x{offset:x}, 0x{stride:x}, {count}, {reg["width"] // 8}, {reg["access"].upper()})')
    return REGISTERS_PROLOGUE.format(licence=HW_LICENCE) + " \\\n".join(rows) + "\n\n#endif\n"


# ------------------------------------------------------------------ tables of docs/hardware.md
def doc_tables(hw):
    return {"bars": doc_bars(hw), "registers": doc_registers(hw), "enums": doc_enums(hw), "structs": doc_structs(hw),
            "packets": doc_packets(hw), "limits": doc_limits(hw), "faults": doc_faults(hw)}


def doc_limits(hw):
    rows = ["| limit | value | meaning |", "| --- | --- | --- |"]
    return "\n".join(rows + [f"| `{c['name']}` | {c['value']:#x} | {c['doc']} |" for c in hw["const"]])


def doc_faults(hw):
    rows = ["| kind | name in text | target | event | effect | FAULT_ARG |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join(rows + [f"| {f['value']} {f['name']} | `{text_name(f['name'])}` | {f.get('target', '')} | "
                             f"{f.get('event', '')} | {f['effect']} | {f.get('arg', '')} |" for f in hw["fault"]])


def doc_bars(hw):
    rows = ["| BAR | name | size | contents |", "| --- | --- | --- | --- |"]
    return "\n".join(rows + [f"| {b['index']} | {b['name']} | {b['size'] or 'LOCAL_MEM_SIZE':#x} | {b['doc']} |"
                             if b["size"] else f"| {b['index']} | {b['name']} | `LOCAL_MEM_SIZE` | {b['doc']} |"
                             for b in hw["bar"]])


def doc_registers(hw):
    out = []
    for block in hw["block"]:
        where = f"`{block['base']:#x}`"
        if block["count"] > 1:
            where += f" + i × `{block['stride']:#x}`, i < {block['count']}"
        out.append(f"#### {block['name']}: {where}\n\n{block['doc']}\n")
        regs = [r for r in hw["reg"] if r["block"] == block["name"]]
        if not regs:
            continue
        out += ["| offset | name | bits | access | reset | meaning |", "| --- | --- | --- | --- | --- | --- |"]
        out += [doc_register(reg) for reg in regs]
        out.append("")
    return "\n".join(out)


def doc_register(reg):
    name = f"`{reg['name']}`" + (f" [{reg['count']}]" if reg.get("count", 1) > 1 else "")
    text = reg["doc"]
    for field in reg.get("fields", []):
        note = f": {field['doc']}" if field.get("doc") else ""
        text += f"<br>[{field['bits']}] `{field['name']}`{note}"
    reset = "changes" if reg.get("volatile") and "reset" not in reg else f"{reg.get('reset', 0):#x}"
    if reg["name"].startswith("CAP_") and "reset" not in reg or reg["name"] == "LOCAL_MEM_SIZE":
        reset = "configured"
    return f"| {reg['offset']:#05x} | {name} | {reg['width']} | {reg['access']} | {reset} | {text} |"


def doc_enums(hw):
    out = []
    for enum in hw["enum"]:
        values = ", ".join(f"{value} {key}" for key, value in enum["values"].items())
        out.append(f"- **{enum['name']}** ({enum['doc'].rstrip('.')}): {values}")
    return "\n".join(out)


def doc_structs(hw):
    out = []
    for struct in hw["struct"]:
        out.append(f"#### struct enpu_{struct['name']}: {struct['size']} bytes\n\n{struct['doc']}\n")
        out.append(doc_fields(struct["fields"], 0))
    for group in hw["bits"]:
        out.append(f"#### {group['name']}\n\n{group['doc']}\n")
        out += ["| bits | name | meaning |", "| --- | --- | --- |"]
        out += [f"| {f['bits']} | `{f['name']}` | {f.get('doc', '')} |" for f in group["fields"]]
        out.append("")
    return "\n".join(out)


def doc_fields(fields, offset):
    rows = ["| offset | type | name | meaning |", "| --- | --- | --- | --- |"]
    for field in fields:
        array = f"[{field['count']}]" if field.get("count", 1) > 1 else ""
        rows.append(f"| {offset} | {field['type']} | `{field['name']}{array}` | {field.get('doc', '')} |")
        offset += field_bytes(field)
    return "\n".join(rows) + "\n"


def doc_packets(hw):
    out = []
    for packet in hw["packet"]:
        out.append(f"#### {packet['opcode']} {packet['name']}: {packet.get('size', 16)} bytes\n\n{packet['doc']}\n")
        if "fields" in packet:
            out.append(doc_fields(packet["fields"], 16))
    for op in hw["operator"]:
        operands = ", ".join(f"`{o}`" for o in op["operands"])
        out.append(f"#### {op['opcode']} {op['name']}: {128 + 96 * len(op['operands'])} bytes\n\n{op['doc']}\n")
        out.append(f"Operands: {operands}. Dtypes: {', '.join(op['dtypes'])}.\n")
        if op["params"]:
            out.append(doc_fields(op["params"], 16))
    return "\n".join(out)


def fill_doc(text, tables):
    for name, table in tables.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"docs/hardware.md has no place for the table '{name}'")
        head, rest = text.split(begin, 1)
        text = f"{head}{begin}\n{table.rstrip()}\n\n{end}{rest.split(end, 1)[1]}"
    return text


def main():
    hw = load()
    doc = ROOT / "docs" / "hardware.md"
    files = {HERE / "include" / "enpu_hw.h": emit_header(hw), HERE / "include" / "enpu_hw_tables.h": emit_tables(hw),
             HERE / "include" / "enpu_hw_registers.h": emit_register_list(hw),
             doc: fill_doc(doc.read_text(), doc_tables(hw))}
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} differs from enpu.toml: run qemu-device/hw/generate.py", file=sys.stderr)
        sys.exit(bool(stale))
    for path in stale:
        path.write_text(files[path])
        print(f"wrote {path.relative_to(ROOT)}")


main()
