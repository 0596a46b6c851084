/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Generated from qemu-device/hw/enpu.toml by generate.py; edit that file.
 * R(NAME, offset, stride, count, bytes, access) for each register, for code that has no room for names. */
#ifndef ENPU_HW_REGISTERS_H
#define ENPU_HW_REGISTERS_H

#define ENPU_REGISTER_LIST(R) \
	R(ID, 0x0, 0x4, 1, 4, RO) \
	R(VERSION, 0x4, 0x4, 1, 4, RO) \
	R(CAP_ENGINES, 0x8, 0x4, 1, 4, RO) \
	R(CAP_LIMITS, 0xc, 0x4, 1, 4, RO) \
	R(CAP_MISC, 0x10, 0x4, 1, 4, RO) \
	R(CAP_FEATURES, 0x14, 0x4, 1, 4, RO) \
	R(LOCAL_MEM_SIZE, 0x18, 0x8, 1, 8, RO) \
	R(CAP_MAX_COMMAND, 0x20, 0x4, 1, 4, RO) \
	R(CAP_MAX_TENSOR, 0x28, 0x8, 1, 8, RO) \
	R(CAP_MAX_WORK, 0x30, 0x8, 1, 8, RO) \
	R(TIMESTAMP, 0x38, 0x8, 1, 8, RO) \
	R(SCRATCH, 0x40, 0x8, 1, 8, RW) \
	R(CAP_OPCODES, 0x48, 0x8, 1, 8, RO) \
	R(CTRL, 0x100, 0x4, 1, 4, RW) \
	R(STATUS, 0x104, 0x4, 1, 4, RO) \
	R(RESET_COUNT, 0x108, 0x4, 1, 4, RO) \
	R(IRQ_ENABLE, 0x110, 0x4, 1, 4, RW) \
	R(IRQ_PENDING, 0x114, 0x4, 1, 4, W1C) \
	R(IRQ_TRIGGER, 0x118, 0x4, 1, 4, WO) \
	R(IRQ_COALESCE, 0x120, 0x4, 1, 4, RW) \
	R(IRQ_RAISED, 0x128, 0x8, 1, 8, RO) \
	R(KICKS, 0x130, 0x8, 1, 8, RO) \
	R(TLB_INVALIDATE, 0x140, 0x4, 1, 4, WO) \
	R(TLB_SEQ, 0x144, 0x4, 1, 4, RO) \
	R(TLB_DONE, 0x148, 0x4, 1, 4, RO) \
	R(ERR_COUNT, 0x160, 0x4, 1, 4, RO) \
	R(ERR_LOST, 0x164, 0x4, 1, 4, RO) \
	R(ERR_POP, 0x168, 0x4, 1, 4, WO) \
	R(ERR_RECORD, 0x180, 0x8, 8, 8, RO) \
	R(SENSOR_TEMP, 0x1d0, 0x4, 1, 4, RO) \
	R(SENSOR_POWER, 0x1d4, 0x4, 1, 4, RO) \
	R(SENSOR_CLOCK, 0x1d8, 0x4, 1, 4, RO) \
	R(FAULT_KIND, 0x200, 0x4, 1, 4, RW) \
	R(FAULT_TARGET, 0x204, 0x4, 1, 4, RW) \
	R(FAULT_AFTER, 0x208, 0x4, 1, 4, RW) \
	R(FAULT_TIMES, 0x20c, 0x4, 1, 4, RW) \
	R(FAULT_ARG, 0x210, 0x8, 1, 8, RW) \
	R(FAULT_ARM, 0x218, 0x4, 1, 4, WO) \
	R(FAULT_EVERY, 0x21c, 0x4, 1, 4, RW) \
	R(FAULT_LAST_NS, 0x220, 0x8, 1, 8, RO) \
	R(FAULT_SEED, 0x228, 0x8, 1, 8, RW) \
	R(FAULT_FIRED, 0x280, 0x4, 32, 4, RO) \
	R(FAULT_FIRED_NS, 0x300, 0x8, 32, 8, RO) \
	R(CAP_OP_DTYPES, 0x400, 0x4, 64, 4, RO) \
	R(ENGINE_CTRL, 0x1000, 0x100, 32, 4, RW) \
	R(ENGINE_STATUS, 0x1004, 0x100, 32, 4, RO) \
	R(ENGINE_QUEUE, 0x1008, 0x100, 32, 4, RO) \
	R(ENGINE_PACKET, 0x100c, 0x100, 32, 4, RO) \
	R(ENGINE_PROGRESS, 0x1010, 0x100, 32, 8, RO) \
	R(ENGINE_FENCE, 0x1018, 0x100, 32, 8, RO) \
	R(ENGINE_BUSY_NS, 0x1020, 0x100, 32, 8, RO) \
	R(ENGINE_JOBS, 0x1028, 0x100, 32, 8, RO) \
	R(AS_ROOT, 0x4000, 0x20, 64, 8, RW) \
	R(AS_CTRL, 0x4008, 0x20, 64, 4, WO) \
	R(QUEUE_CTRL, 0x8000, 0x80, 256, 4, RW) \
	R(QUEUE_STATUS, 0x8004, 0x80, 256, 4, RO) \
	R(QUEUE_ADDR, 0x8008, 0x80, 256, 8, RW) \
	R(QUEUE_HEAD, 0x8010, 0x80, 256, 8, RW) \
	R(QUEUE_RESUME, 0x8018, 0x80, 256, 8, RW) \
	R(QUEUE_FENCE, 0x8020, 0x80, 256, 8, RO) \
	R(QUEUE_KICK, 0x8028, 0x80, 256, 4, WO)

#endif
