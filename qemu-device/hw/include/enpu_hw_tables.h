/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Generated from qemu-device/hw/enpu.toml by generate.py; edit that file.
 * Names, resets, masks and operands for the model, the packet rules, the register tool and the bring-up harness. */
#ifndef ENPU_HW_TABLES_H
#define ENPU_HW_TABLES_H
#include "enpu_hw.h"

struct enpu_field_info { const char *name; uint64_t mask; };
enum enpu_access_kind { ENPU_RO, ENPU_RW, ENPU_WO, ENPU_W1C };
struct enpu_reg_info {
    const char *name;
    uint32_t offset; /* of the first one */
    uint32_t stride, count;
    uint8_t bytes, access, is_volatile;
    uint64_t reset; /* meaningful when not volatile and has_reset */
    uint8_t has_reset;
    const struct enpu_field_info *fields; /* ends with a NULL name */
};
struct enpu_operand_info { const char *name; uint8_t optional; };
struct enpu_opcode_info {
    const char *name;
    uint8_t exists, is_operator, num_operands;
    uint16_t packet_bytes; /* 0: header only */
    uint16_t param_bytes;
    uint32_t dtypes; /* bit d: enum enpu_dtype d */
    struct enpu_operand_info operands[ENPU_MAX_OPERANDS];
};
struct enpu_name { const char *name; uint32_t value; };
struct enpu_fault_info { const char *name, *target, *event, *effect, *argument; }; /* empty: none */

static const struct enpu_field_info enpu_fields_version[] = {{"MINOR", 0xffffull}, {"MAJOR", 0xffff0000ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_cap_engines[] = {{"CORES", 0xffull}, {"COPY", 0xff00ull}, {"THREADS", 0xff0000ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_cap_limits[] = {{"QUEUES", 0xffffull}, {"AS", 0xffff0000ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_cap_misc[] = {{"VA_BITS", 0xffull}, {"VECTORS", 0xff00ull}, {"RING_LOG2", 0xff0000ull}, {"FIFO", 0xff000000ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_cap_features[] = {{"FAULT_INJECTION", 0x1ull}, {"SYNC", 0x2ull}, {"USER_QUEUES", 0x4ull}, {"IRQ_FENCE", 0x8ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_ctrl[] = {{"ENABLE", 0x1ull}, {"RESET", 0x2ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_status[] = {{"READY", 0x1ull}, {"RESETTING", 0x2ull}, {"BUSY", 0x4ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_irq_coalesce[] = {{"COUNT", 0xffffull}, {"USEC", 0xffff0000ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_tlb_invalidate[] = {{"AS", 0xffffull}, {"ALL", 0x80000000ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_engine_ctrl[] = {{"STOP", 0x1ull}, {"RESET", 0x2ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_engine_status[] = {{"STATE", 0xfull}, {"KIND", 0xf0ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_as_root[] = {{"VALID", 0x1ull}, {"ADDR", 0xffffffffff000ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_as_ctrl[] = {{"CLEAR", 0x1ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_queue_ctrl[] = {{"ENABLE", 0x1ull}, {"VIRT", 0x2ull}, {"RING_LOG2", 0xf0ull}, {"ENGINE", 0xff00ull}, {"AS", 0xff0000ull}, {"PRIORITY", 0xf000000ull}, {0, 0}};
static const struct enpu_field_info enpu_fields_queue_status[] = {{"STATE", 0xfull}, {"ERROR", 0xff00ull}, {0, 0}};

static const struct enpu_reg_info enpu_registers[] = {
    {"ID", 0x0, 0x4, 1, 4, ENPU_RO, 0, 0x55504e45ull, 1, 0},
    {"VERSION", 0x4, 0x4, 1, 4, ENPU_RO, 0, 0x10000ull, 1, enpu_fields_version},
    {"CAP_ENGINES", 0x8, 0x4, 1, 4, ENPU_RO, 0, 0x0ull, 0, enpu_fields_cap_engines},
    {"CAP_LIMITS", 0xc, 0x4, 1, 4, ENPU_RO, 0, 0x0ull, 0, enpu_fields_cap_limits},
    {"CAP_MISC", 0x10, 0x4, 1, 4, ENPU_RO, 0, 0x0ull, 0, enpu_fields_cap_misc},
    {"CAP_FEATURES", 0x14, 0x4, 1, 4, ENPU_RO, 0, 0x0ull, 0, enpu_fields_cap_features},
    {"LOCAL_MEM_SIZE", 0x18, 0x8, 1, 8, ENPU_RO, 0, 0x0ull, 0, 0},
    {"CAP_MAX_COMMAND", 0x20, 0x4, 1, 4, ENPU_RO, 0, 0x4000000ull, 1, 0},
    {"CAP_MAX_TENSOR", 0x28, 0x8, 1, 8, ENPU_RO, 0, 0x40000000ull, 1, 0},
    {"CAP_MAX_WORK", 0x30, 0x8, 1, 8, ENPU_RO, 0, 0x4000000000ull, 1, 0},
    {"TIMESTAMP", 0x38, 0x8, 1, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"SCRATCH", 0x40, 0x8, 1, 8, ENPU_RW, 0, 0x0ull, 1, 0},
    {"CAP_OPCODES", 0x48, 0x8, 1, 8, ENPU_RO, 0, 0x0ull, 0, 0},
    {"CTRL", 0x100, 0x4, 1, 4, ENPU_RW, 0, 0x0ull, 1, enpu_fields_ctrl},
    {"STATUS", 0x104, 0x4, 1, 4, ENPU_RO, 1, 0x1ull, 1, enpu_fields_status},
    {"RESET_COUNT", 0x108, 0x4, 1, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"IRQ_ENABLE", 0x110, 0x4, 1, 4, ENPU_RW, 0, 0x0ull, 1, 0},
    {"IRQ_PENDING", 0x114, 0x4, 1, 4, ENPU_W1C, 1, 0x0ull, 0, 0},
    {"IRQ_TRIGGER", 0x118, 0x4, 1, 4, ENPU_WO, 0, 0x0ull, 0, 0},
    {"IRQ_COALESCE", 0x120, 0x4, 1, 4, ENPU_RW, 0, 0x0ull, 1, enpu_fields_irq_coalesce},
    {"IRQ_RAISED", 0x128, 0x8, 1, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"KICKS", 0x130, 0x8, 1, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"TLB_INVALIDATE", 0x140, 0x4, 1, 4, ENPU_WO, 0, 0x0ull, 0, enpu_fields_tlb_invalidate},
    {"TLB_SEQ", 0x144, 0x4, 1, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"TLB_DONE", 0x148, 0x4, 1, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"ERR_COUNT", 0x160, 0x4, 1, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"ERR_LOST", 0x164, 0x4, 1, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"ERR_POP", 0x168, 0x4, 1, 4, ENPU_WO, 0, 0x0ull, 0, 0},
    {"ERR_RECORD", 0x180, 0x8, 8, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"SENSOR_TEMP", 0x1d0, 0x4, 1, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"SENSOR_POWER", 0x1d4, 0x4, 1, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"SENSOR_CLOCK", 0x1d8, 0x4, 1, 4, ENPU_RO, 0, 0x3e8ull, 1, 0},
    {"FAULT_KIND", 0x200, 0x4, 1, 4, ENPU_RW, 0, 0x0ull, 1, 0},
    {"FAULT_TARGET", 0x204, 0x4, 1, 4, ENPU_RW, 0, 0x0ull, 1, 0},
    {"FAULT_AFTER", 0x208, 0x4, 1, 4, ENPU_RW, 0, 0x0ull, 1, 0},
    {"FAULT_TIMES", 0x20c, 0x4, 1, 4, ENPU_RW, 0, 0x0ull, 1, 0},
    {"FAULT_ARG", 0x210, 0x8, 1, 8, ENPU_RW, 0, 0x0ull, 1, 0},
    {"FAULT_ARM", 0x218, 0x4, 1, 4, ENPU_WO, 0, 0x0ull, 0, 0},
    {"FAULT_EVERY", 0x21c, 0x4, 1, 4, ENPU_RW, 0, 0x0ull, 1, 0},
    {"FAULT_LAST_NS", 0x220, 0x8, 1, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"FAULT_SEED", 0x228, 0x8, 1, 8, ENPU_RW, 0, 0x0ull, 1, 0},
    {"FAULT_FIRED", 0x280, 0x4, 32, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"FAULT_FIRED_NS", 0x300, 0x8, 32, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"CAP_OP_DTYPES", 0x400, 0x4, 64, 4, ENPU_RO, 0, 0x0ull, 0, 0},
    {"ENGINE_CTRL", 0x1000, 0x100, 32, 4, ENPU_RW, 0, 0x0ull, 1, enpu_fields_engine_ctrl},
    {"ENGINE_STATUS", 0x1004, 0x100, 32, 4, ENPU_RO, 1, 0x0ull, 0, enpu_fields_engine_status},
    {"ENGINE_QUEUE", 0x1008, 0x100, 32, 4, ENPU_RO, 1, 0xffffffffull, 1, 0},
    {"ENGINE_PACKET", 0x100c, 0x100, 32, 4, ENPU_RO, 1, 0x0ull, 0, 0},
    {"ENGINE_PROGRESS", 0x1010, 0x100, 32, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"ENGINE_FENCE", 0x1018, 0x100, 32, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"ENGINE_BUSY_NS", 0x1020, 0x100, 32, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"ENGINE_JOBS", 0x1028, 0x100, 32, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"AS_ROOT", 0x4000, 0x20, 64, 8, ENPU_RW, 0, 0x0ull, 1, enpu_fields_as_root},
    {"AS_CTRL", 0x4008, 0x20, 64, 4, ENPU_WO, 0, 0x0ull, 0, enpu_fields_as_ctrl},
    {"QUEUE_CTRL", 0x8000, 0x80, 256, 4, ENPU_RW, 0, 0x0ull, 1, enpu_fields_queue_ctrl},
    {"QUEUE_STATUS", 0x8004, 0x80, 256, 4, ENPU_RO, 1, 0x0ull, 0, enpu_fields_queue_status},
    {"QUEUE_ADDR", 0x8008, 0x80, 256, 8, ENPU_RW, 0, 0x0ull, 1, 0},
    {"QUEUE_HEAD", 0x8010, 0x80, 256, 8, ENPU_RW, 1, 0x0ull, 1, 0},
    {"QUEUE_RESUME", 0x8018, 0x80, 256, 8, ENPU_RW, 1, 0x0ull, 1, 0},
    {"QUEUE_FENCE", 0x8020, 0x80, 256, 8, ENPU_RO, 1, 0x0ull, 0, 0},
    {"QUEUE_KICK", 0x8028, 0x80, 256, 4, ENPU_WO, 0, 0x0ull, 0, 0},
};
#define ENPU_NUM_REGISTERS (sizeof(enpu_registers) / sizeof(enpu_registers[0]))

static const struct enpu_name enpu_engine_state_names[] = {{"IDLE", 0}, {"RUNNING", 1}, {"STOPPED", 2}, {"RESETTING", 3}, {0, 0}};
static const struct enpu_name enpu_engine_kind_names[] = {{"COMPUTE", 0}, {"COPY", 1}, {0, 0}};
static const struct enpu_name enpu_queue_state_names[] = {{"DISABLED", 0}, {"IDLE", 1}, {"ACTIVE", 2}, {"WAITING", 3}, {"FAULTED", 4}, {"STOPPING", 5}, {0, 0}};
static const struct enpu_name enpu_status_names[] = {{"OK", 0}, {"ILLEGAL_PACKET", 1}, {"BAD_OPERAND", 2}, {"MMU_FAULT", 3}, {"DMA_ERROR", 4}, {"ECC_UNCORRECTED", 5}, {"ECC_CORRECTED", 6}, {"ABORTED", 7}, {"TORN", 8}, {"WAIT_TIMEOUT", 9}, {"RING_ERROR", 10}, {"OUT_OF_MEMORY", 11}, {"UNSUPPORTED", 12}, {"LIMIT", 13}, {0, 0}};
static const struct enpu_name enpu_access_names[] = {{"NONE", 0}, {"READ", 1}, {"WRITE", 2}, {"FETCH", 3}, {0, 0}};
static const struct enpu_name enpu_mmu_cause_names[] = {{"NONE", 0}, {"NOT_MAPPED", 1}, {"PERMISSION", 2}, {"TABLE", 3}, {"RANGE", 4}, {"NO_ROOT", 5}, {0, 0}};
static const struct enpu_name enpu_dtype_names[] = {{"NONE", 0}, {"F32", 1}, {"F16", 2}, {"BF16", 3}, {"I8", 4}, {"U8", 5}, {"I32", 6}, {"I64", 7}, {"BOOL", 8}, {0, 0}};
static const struct enpu_name enpu_format_names[] = {{"PLAIN", 0}, {"PACKED", 1}, {0, 0}};
static const struct enpu_name enpu_unary_names[] = {{"IDENTITY", 0}, {"RELU", 1}, {"LEAKY_RELU", 2}, {"CLIP", 3}, {"SIGMOID", 4}, {"TANH", 5}, {"GELU", 6}, {"GELU_TANH", 7}, {"SILU", 8}, {"HARD_SIGMOID", 9}, {"HARD_SWISH", 10}, {"ELU", 11}, {"SELU", 12}, {"CELU", 13}, {"SOFTPLUS", 14}, {"SOFTSIGN", 15}, {"MISH", 16}, {"THRESHOLDED_RELU", 17}, {"EXP", 18}, {"LOG", 19}, {"SQRT", 20}, {"RSQRT", 21}, {"RECIPROCAL", 22}, {"ABS", 23}, {"NEG", 24}, {"SIGN", 25}, {"FLOOR", 26}, {"CEIL", 27}, {"ROUND", 28}, {"ERF", 29}, {"SIN", 30}, {"COS", 31}, {"TAN", 32}, {"ASIN", 33}, {"ACOS", 34}, {"ATAN", 35}, {"SINH", 36}, {"COSH", 37}, {"ASINH", 38}, {"ACOSH", 39}, {"ATANH", 40}, {"NOT", 41}, {"ISNAN", 42}, {"ISINF", 43}, {"SQUARE", 44}, {"SCALE", 45}, {"BIT_NOT", 46}, {"QUICK_GELU", 47}, {"SHRINK", 48}, {0, 0}};
static const struct enpu_name enpu_binary_names[] = {{"ADD", 0}, {"SUB", 1}, {"MUL", 2}, {"DIV", 3}, {"MIN", 4}, {"MAX", 5}, {"POW", 6}, {"MOD", 7}, {"FMOD", 8}, {"PRELU", 9}, {"EQ", 16}, {"NE", 17}, {"LT", 18}, {"LE", 19}, {"GT", 20}, {"GE", 21}, {"AND", 22}, {"OR", 23}, {"XOR", 24}, {"BIT_AND", 25}, {"BIT_OR", 26}, {"BIT_XOR", 27}, {"SHIFT_LEFT", 28}, {"SHIFT_RIGHT", 29}, {0, 0}};
static const struct enpu_name enpu_pool_names[] = {{"MAX", 0}, {"AVERAGE", 1}, {"AVERAGE_INCLUDE_PAD", 2}, {0, 0}};
static const struct enpu_name enpu_norm_names[] = {{"LAYER", 0}, {"RMS", 1}, {"BATCH", 2}, {"INSTANCE", 3}, {"GROUP", 4}, {0, 0}};
static const struct enpu_name enpu_reduce_names[] = {{"SUM", 0}, {"MEAN", 1}, {"MAX", 2}, {"MIN", 3}, {"PROD", 4}, {"L1", 5}, {"L2", 6}, {"SUM_SQUARE", 7}, {"LOG_SUM", 8}, {"LOG_SUM_EXP", 9}, {0, 0}};
static const struct enpu_name enpu_pad_mode_names[] = {{"CONSTANT", 0}, {"EDGE", 1}, {"REFLECT", 2}, {"WRAP", 3}, {0, 0}};
static const struct enpu_name enpu_gather_mode_names[] = {{"TAKE", 0}, {"ELEMENTS", 1}, {0, 0}};
static const struct enpu_name enpu_resize_mode_names[] = {{"NEAREST", 0}, {"LINEAR", 1}, {"CUBIC", 2}, {0, 0}};
static const struct enpu_name enpu_resize_coord_names[] = {{"HALF_PIXEL", 0}, {"PYTORCH_HALF_PIXEL", 1}, {"ALIGN_CORNERS", 2}, {"ASYMMETRIC", 3}, {"HALF_PIXEL_SYMMETRIC", 4}, {"TF_CROP_AND_RESIZE", 5}, {0, 0}};
static const struct enpu_name enpu_resize_round_names[] = {{"ROUND_PREFER_FLOOR", 0}, {"ROUND_PREFER_CEIL", 1}, {"FLOOR", 2}, {"CEIL", 3}, {0, 0}};
static const struct enpu_name enpu_pack_kind_names[] = {{"CONV2D", 0}, {"MATMUL", 1}, {"CONV_TRANSPOSE2D", 2}, {0, 0}};
static const struct enpu_name enpu_counter_names[] = {{"OPCODE0", 0}, {"JOBS", 64}, {"PACKETS", 65}, {"BUSY_COMPUTE_NS", 66}, {"BUSY_COPY_NS", 67}, {"BYTES_READ", 68}, {"BYTES_WRITTEN", 69}, {"WORK", 70}, {"FAULTS", 71}, {"TLB_HITS", 72}, {"TLB_MISSES", 73}, {"STALL_NS", 74}, {"TILES", 75}, {"JOBS_FAILED", 76}, {"COPY_BYTES", 77}, {0, 0}};
static const struct enpu_name enpu_fault_kind_names[] = {{"NONE", 0}, {"ENGINE_HANG", 1}, {"ENGINE_SLOW", 2}, {"IRQ_LOST", 3}, {"IRQ_REPEATED", 4}, {"IRQ_SPURIOUS", 5}, {"IRQ_STORM", 6}, {"COMPLETION_DELAYED", 7}, {"COMPLETION_CORRUPTED", 8}, {"ECC_CORRECTED", 9}, {"ECC_UNCORRECTED", 10}, {"DMA_READ", 11}, {"DMA_WRITE", 12}, {"MMU_FAULT", 13}, {"ILLEGAL_PACKET", 14}, {"DOORBELL_IGNORED", 15}, {"LOCAL_EXHAUSTED", 16}, {"RESET_FAILS", 17}, {"REMOVED", 18}, {"FENCE_CORRUPTED", 19}, {"TLB_STUCK", 20}, {0, 0}};

static const struct enpu_fault_info enpu_faults[] = {
    {"none", "", "", "clears every fault, hang, stuck reset and removal", ""},
    {"engine-hang", "engine", "tile", "stands still until its reset; the job stays on it", ""},
    {"engine-slow", "engine", "tile", "a pause before it", "ns, at most 1 s; 0: 1 ms"},
    {"irq-lost", "vector", "message of the vector", "never sent; IRQ_PENDING shows it", ""},
    {"irq-repeated", "vector", "message of the vector", "sent twice", ""},
    {"irq-spurious", "vector", "start of a job of the vector's engine", "a message that nothing asked for", ""},
    {"irq-storm", "vector", "message of the vector", "sent many times", "messages, at most 100000; 0: 1000"},
    {"completion-delayed", "queue", "completion", "comes later; progress goes on", "ns, at most 10 s; 0: 100 ms"},
    {"completion-corrupted", "queue", "completion", "wrong fence in its record; the fence word is right", "mask of flipped bits; 0: all"},
    {"ecc-corrected", "engine", "packet", "record ECC_CORRECTED; the job goes on", ""},
    {"ecc-uncorrected", "engine", "packet", "the job fails with ECC_UNCORRECTED", ""},
    {"dma-read", "engine", "read of guest memory", "fails; DMA_ERROR", ""},
    {"dma-write", "engine", "write of guest memory", "fails; DMA_ERROR", ""},
    {"mmu-fault", "engine", "translation", "refused; MMU_FAULT", ""},
    {"illegal-packet", "engine", "packet", "the job fails with ILLEGAL_PACKET", ""},
    {"doorbell-ignored", "queue", "kick", "not seen", ""},
    {"local-exhausted", "engine", "packet", "the job fails with OUT_OF_MEMORY", ""},
    {"reset-fails", "engine", "reset of the engine; the device's own matches any only", "never ends; the next try may", ""},
    {"removed", "", "access of a BAR", "all BARs and config space read as ones, writes, DMA and interrupts are lost", "ns until the link is back; 0: when faults are cleared"},
    {"fence-corrupted", "queue", "completion", "wrong fence word in queue memory; QUEUE_FENCE and the record are right", "mask of flipped bits; 0: all"},
    {"tlb-stuck", "as", "TLB_INVALIDATE of the address space", "TLB_DONE stands still until a device reset; nothing stale is used", ""},
};

static const struct enpu_opcode_info enpu_opcodes[ENPU_MAX_OPCODES] = {
    {"NOP", 1, 0, 0, 16, 0, 0x0, {{0, 0}}}, /* 0 */
    {"COPY", 1, 0, 0, 64, 0, 0x0, {{0, 0}}}, /* 1 */
    {"FILL", 1, 0, 0, 48, 0, 0x0, {{0, 0}}}, /* 2 */
    {"BARRIER", 1, 0, 0, 16, 0, 0x0, {{0, 0}}}, /* 3 */
    {"WAIT", 1, 0, 0, 48, 0, 0x0, {{0, 0}}}, /* 4 */
    {"SIGNAL", 1, 0, 0, 32, 0, 0x0, {{0, 0}}}, /* 5 */
    {"TIMESTAMP", 1, 0, 0, 32, 0, 0x0, {{0, 0}}}, /* 6 */
    {"PACK", 1, 1, 2, 320, 8, 0x1e, {{"weights", 0}, {"packed", 0}}}, /* 7 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 8 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 9 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 10 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 11 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 12 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 13 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 14 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 15 */
    {"CONV2D", 1, 1, 6, 704, 48, 0x7e, {{"x", 0}, {"weights", 0}, {"bias", 1}, {"residual", 1}, {"scale", 1}, {"y", 0}}}, /* 16 */
    {"CONV_TRANSPOSE2D", 1, 1, 4, 512, 48, 0xe, {{"x", 0}, {"weights", 0}, {"bias", 1}, {"y", 0}}}, /* 17 */
    {"MATMUL", 1, 1, 6, 704, 16, 0x7e, {{"a", 0}, {"b", 0}, {"bias", 1}, {"residual", 1}, {"scale", 1}, {"y", 0}}}, /* 18 */
    {"POOL", 1, 1, 2, 320, 44, 0x3e, {{"x", 0}, {"y", 0}}}, /* 19 */
    {"UNARY", 1, 1, 2, 320, 12, 0x1fe, {{"x", 0}, {"y", 0}}}, /* 20 */
    {"BINARY", 1, 1, 3, 416, 16, 0x1fe, {{"a", 0}, {"b", 0}, {"y", 0}}}, /* 21 */
    {"SELECT", 1, 1, 4, 512, 0, 0x1fe, {{"condition", 0}, {"a", 0}, {"b", 0}, {"y", 0}}}, /* 22 */
    {"SOFTMAX", 1, 1, 2, 320, 8, 0xe, {{"x", 0}, {"y", 0}}}, /* 23 */
    {"NORM", 1, 1, 6, 704, 28, 0xe, {{"x", 0}, {"scale", 1}, {"bias", 1}, {"mean", 1}, {"variance", 1}, {"y", 0}}}, /* 24 */
    {"REDUCE", 1, 1, 2, 320, 8, 0x1fe, {{"x", 0}, {"y", 0}}}, /* 25 */
    {"ARG", 1, 1, 2, 320, 12, 0xfe, {{"x", 0}, {"y", 0}}}, /* 26 */
    {"MOVE", 1, 1, 2, 320, 0, 0x1fe, {{"x", 0}, {"y", 0}}}, /* 27 */
    {"PAD", 1, 1, 2, 320, 48, 0x1fe, {{"x", 0}, {"y", 0}}}, /* 28 */
    {"GATHER", 1, 1, 3, 416, 8, 0x1fe, {{"x", 0}, {"indices", 0}, {"y", 0}}}, /* 29 */
    {"RESIZE", 1, 1, 2, 320, 88, 0x3e, {{"x", 0}, {"y", 0}}}, /* 30 */
    {"CAST", 1, 1, 2, 320, 0, 0x1fe, {{"x", 0}, {"y", 0}}}, /* 31 */
    {"QUANTIZE", 1, 1, 4, 512, 0, 0x3e, {{"x", 0}, {"scale", 0}, {"zero_point", 1}, {"y", 0}}}, /* 32 */
    {"DEQUANTIZE", 1, 1, 4, 512, 0, 0x7e, {{"x", 0}, {"scale", 0}, {"zero_point", 1}, {"y", 0}}}, /* 33 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 34 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 35 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 36 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 37 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 38 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 39 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 40 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 41 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 42 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 43 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 44 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 45 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 46 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 47 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 48 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 49 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 50 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 51 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 52 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 53 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 54 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 55 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 56 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 57 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 58 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 59 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 60 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 61 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 62 */
    {0, 0, 0, 0, 0, 0, 0, {{0, 0}}}, /* 63 */
};

#endif
