/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * An injected fault and its text form, which is the same everywhere: the driver's debugfs file inject_fault, QEMU's
 * property inject-fault, the simulator's option faults= and ENPU_SIM_FAULTS, tools/enpu.
 *
 *     KIND[:KEY=VALUE]...        engine-hang:engine=0:after=3   irq-lost:times=always   dma-read:every=50:seed=7:times=20
 *
 * KIND is a name of ENPU_FAULT_KIND_NAMES; "none" clears all. Keys: what the kind's target is called
 * (engine, vector, queue, as) or "target", and after, times, every, seed, arg. Values are decimal or 0x; "any" is a target,
 * "always" a number of times. Defaults: any target, after 0, times 1, every event, seed 0, arg 0. A comma does for a colon; several
 * faults are separated by semicolons, white space or line ends.
 *
 * No library is needed: the kernel, QEMU and C++ include this.
 */
#ifndef ENPU_FAULT_H
#define ENPU_FAULT_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif
#include "enpu_hw.h"

#define ENPU_FAULT_ANY 0xffffffffu    /* target */
#define ENPU_FAULT_ALWAYS 0xffffffffu /* times */

struct enpu_fault {
	uint32_t kind;     /* enum enpu_fault_kind */
	uint32_t target;   /* ENPU_FAULT_ANY, or what the kind's target numbers */
	uint32_t after;    /* events that pass first */
	uint32_t times;    /* how often it fires; ENPU_FAULT_ALWAYS: until it is cleared */
	uint32_t every;    /* fires with probability 1/every; 0 and 1: at each event */
	uint32_t reserved; /* 0 */
	uint64_t argument; /* FAULT_ARG */
	uint64_t seed;     /* of the draws for `every` */
};

static inline int enpu_fault_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';';
}

static inline int enpu_fault_ends_word(char c)
{
	return !c || c == ':' || c == ',' || c == '=' || enpu_fault_is_space(c);
}

/* Takes `word` from the text when it stands there as a whole. */
static inline int enpu_fault_take(const char **text, const char *word)
{
	const char *at = *text;

	while (*word && *at == *word) {
		at++;
		word++;
	}
	if (*word || !enpu_fault_ends_word(*at))
		return 0;
	*text = at;
	return 1;
}

/* Takes a number up to `max`; 0 when there is none. */
static inline int enpu_fault_take_number(const char **text, uint64_t max, uint64_t *value)
{
	const char *at = *text;
	unsigned int base = 10, digit;
	uint64_t n = 0, most = ~(uint64_t)0 / 10; /* one more digit always fits behind it */

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
		base = 16;
		most = ~(uint64_t)0 / 16;
		at += 2;
	}
	if (enpu_fault_ends_word(*at))
		return 0;
	for (; !enpu_fault_ends_word(*at); at++) {
		if (*at >= '0' && *at <= '9')
			digit = (unsigned int)(*at - '0');
		else if ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'f')
			digit = (unsigned int)((*at | 0x20) - 'a') + 10;
		else
			return 0;
		if (digit >= base || n > most || n * base > max - (digit < max ? digit : max))
			return 0;
		n = n * base + digit;
	}
	if (n > max)
		return 0;
	*value = n;
	*text = at;
	return 1;
}

static inline const char *enpu_fault_take_kind(const char **text, struct enpu_fault *fault)
{
	static const char *const names[] = ENPU_FAULT_KIND_NAMES;
	uint32_t i;

	for (i = 0; i < ENPU_FAULT_KINDS; i++) {
		if (enpu_fault_take(text, names[i])) {
			fault->kind = i;
			return NULL;
		}
	}
	return "no kind of fault has this name";
}

static inline const char *enpu_fault_take_pair(const char **text, struct enpu_fault *fault)
{
	static const char *const targets[] = ENPU_FAULT_KIND_TARGETS;
	const char *target = targets[fault->kind];
	uint64_t wide = 0, *value64 = NULL;
	uint32_t *value = NULL;
	const char *word = NULL;

	if (enpu_fault_take(text, "target") || (*target && enpu_fault_take(text, target))) {
		value = &fault->target;
		word = "any";
	} else if (enpu_fault_take(text, "times")) {
		value = &fault->times;
		word = "always";
	} else if (enpu_fault_take(text, "after")) {
		value = &fault->after;
	} else if (enpu_fault_take(text, "every")) {
		value = &fault->every;
	} else if (enpu_fault_take(text, "seed")) {
		value64 = &fault->seed;
	} else if (enpu_fault_take(text, "arg")) {
		value64 = &fault->argument;
	} else {
		return "this kind of fault has no such key";
	}
	if (**text != '=')
		return "a key needs '=' and a value";
	++*text;
	if (word && enpu_fault_take(text, word)) {
		*value = 0xffffffffu;
		return NULL;
	}
	if (!enpu_fault_take_number(text, value ? 0xffffffffu : ~(uint64_t)0, &wide))
		return "not a number that fits";
	if (value)
		*value = (uint32_t)wide;
	else
		*value64 = wide;
	return NULL;
}

/*
 * enpu_fault_parse() - Take the next fault from a text.
 * @text: NUL-terminated; moved behind the fault and what separates it from the next, or to what cannot be read
 * @fault: filled
 *
 * Does not check that the target exists. At the end of the text, when *text is "" on entry, there is no fault: look first.
 *
 * Return: NULL, or what is wrong at *text (a static string).
 */
static inline const char *enpu_fault_parse(const char **text, struct enpu_fault *fault)
{
	const char *wrong;

	fault->target = ENPU_FAULT_ANY;
	fault->after = fault->every = fault->reserved = 0;
	fault->times = 1;
	fault->argument = fault->seed = 0;
	while (enpu_fault_is_space(**text))
		++*text;
	wrong = enpu_fault_take_kind(text, fault);
	while (!wrong && (**text == ':' || **text == ',')) {
		++*text;
		wrong = enpu_fault_take_pair(text, fault);
	}
	if (wrong)
		return wrong;
	if (**text && !enpu_fault_is_space(**text))
		return "faults are separated by ';', keys by ':'";
	if (!fault->times)
		return "a fault with times=0 never fires";
	while (enpu_fault_is_space(**text))
		++*text;
	return NULL;
}

#endif
