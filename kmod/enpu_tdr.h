/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hang detection.
 */
#ifndef ENPU_TDR_H
#define ENPU_TDR_H

struct enpu_device;
struct enpu_engine;

void enpu_tdr_tick(struct enpu_engine *engine);
void enpu_tdr_init(struct enpu_engine *engine);
void enpu_tdr_start(struct enpu_engine *engine);
void enpu_tdr_fini(struct enpu_device *edev);

#endif
