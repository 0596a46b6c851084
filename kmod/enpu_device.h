/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device: what probe found, its registers, and the objects that hardware names by number.
 */
#ifndef ENPU_DEVICE_H
#define ENPU_DEVICE_H

#include <linux/idr.h>
#include <linux/io.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <drm/drm_device.h>
#include <drm/drm_mm.h>
#include <drm/gpu_scheduler.h>

#include "enpu_coredump.h"
#include "enpu_hw.h"
#include "enpu_irq.h"
#include "enpu_notify.h"

struct enpu_queue;
struct enpu_vm;

/*
 * A queue holds so many jobs at once. The scheduler has credits for all queues to be full: it gives
 * them to the oldest jobs, so with fewer one client could have all of them.
 */
#define ENPU_RING_LOG2		7
#define ENPU_RING_ENTRIES	BIT(ENPU_RING_LOG2)
#define ENPU_CREDITS		(ENPU_RING_ENTRIES * ENPU_MAX_QUEUES)
/* How often a busy engine is looked at. */
#define ENPU_TICK_MS		250
#define ENPU_DEFAULT_TIMEOUT_MS	10000
#define ENPU_MAX_TIMEOUT_MS	600000

/**
 * struct enpu_engine - one compute core or copy engine
 * @edev: its device
 * @index: number in the registers
 * @is_copy: a copy engine
 * @name: for the scheduler
 * @sched: its scheduler
 * @lock: protects @queues, and of each of them the jobs, tail and states; taken in hard interrupts
 * @queues: hardware queues on this engine
 * @parked: the device sleeps: no doorbells; under @lock
 * @ringing: doorbells that are being rung; counted up under @lock
 * @watch: what the last tick saw; only the recovery worker looks
 */
struct enpu_engine {
	struct enpu_device *edev;
	u32 index;
	bool is_copy;
	char name[24];
	struct drm_gpu_scheduler sched;
	struct mutex entity_lock; /* while the scheduler rests for an entity to end */
	spinlock_t lock; /* see above */
	struct list_head queues;
	bool parked;
	atomic_t ringing;
	struct {
		u32 queue;
		u64 fence;
		u64 progress;
		u64 since_ns;
	} watch;
	struct delayed_work watchdog;
};

/**
 * struct enpu_inject - a failure that is armed, see enpu_inject.h
 * @tgid: process it is for, 0 when none is armed
 * @left: calls until it fires
 * @probe_steps: steps of the probe so far
 */
struct enpu_inject {
	pid_t tgid;
	atomic_t left;
	u32 probe_steps;
};

/**
 * struct enpu_load - the load as it was told last; under local_lock
 * @since_ns: when
 * @busy_ns: time of all engines until then
 * @percent: what was told
 */
struct enpu_load {
	u64 since_ns;
	u64 busy_ns;
	u32 percent;
};

/**
 * struct enpu_caps - what QUERY tells of the capability registers, which cannot be read at any time
 * @threads: of a compute core
 * @max_tensor: bytes
 * @max_work: of a packet
 * @opcodes: bit per opcode
 * @dtypes: bit per type, by opcode
 */
struct enpu_caps {
	u32 threads;
	u64 max_tensor;
	u64 max_work;
	u64 opcodes;
	u32 dtypes[ENPU_MAX_OPCODES];
};

/**
 * struct enpu_live - objects that exist; all 0 when no file is open and no buffer is shared
 * @files: open files
 * @vms: address spaces
 * @contexts: contexts
 * @queues: hardware queues
 * @bos: buffer objects
 * @mappings: of buffer objects into address spaces
 * @tables: page tables
 * @dma: mappings for DMA; 0 too when the device has gone
 * @pinned_pages: of processes
 */
struct enpu_live {
	atomic_t files;
	atomic_t vms;
	atomic_t contexts;
	atomic_t queues;
	atomic_t bos;
	atomic_t mappings;
	atomic_t tables;
	atomic_t dma;
	atomic_long_t pinned_pages;
};

/**
 * struct enpu_device - one PCI function
 * @drm: base
 * @pdev: PCI device
 * @regs: register BAR
 * @doorbells: doorbell BAR
 * @local_io: write-combined mapping of the local memory
 * @local_phys: physical address of the local memory
 * @local_bytes: its size
 * @local_lock: protects @local_mm, @local_free and @load
 * @local_mm: allocator of local memory, in offsets
 * @local_free: bytes not allocated
 * @hw_version: VERSION register
 * @features: CAP_FEATURES register
 * @caps: more of them
 * @clock_ns: the device's clock minus CLOCK_MONOTONIC, as it was read last
 * @max_command: CAP_MAX_COMMAND register
 * @max_ring_log2: largest ring of a queue
 * @num_queues: hardware queues
 * @num_as: address spaces
 * @num_compute: compute cores, the first engines
 * @num_engines: all engines
 * @engines: they
 * @hw_lock: serialises the queue, address-space and control registers, the error FIFO and resets;
 *   protects @queues, @vms, @running
 * @queues: hardware queues by number
 * @vms: address spaces by number
 * @running: the hardware is programmed; false while suspended, wedged or away: objects then change
 *   in memory only
 * @door_lock: protects @doors_open and what processes have mapped of the doorbells; outside
 *   @hw_lock, never taken in the path of fences
 * @doors_open: a store to a mapped doorbell may reach the device
 * @dma_lock: protects @dma, and orders what is unmapped; see enpu_dma.c
 * @dma: struct enpu_dma of all that is mapped for DMA
 * @tlb_lock: serialises TLB invalidations; inside @hw_lock
 * @wedged: given up; every ioctl fails
 * @config: configuration space as it was at the end of probe, may be NULL
 * @recovery_wq: ordered: scheduler ticks, errors and requested resets
 * @error_work: drains the error FIFO
 * @reset_work: does the resets of @reset_request
 * @reset_request: bit per engine, ENPU_RESET_DEVICE for all
 * @vectors: interrupts
 * @irq_lock: protects @irq_enabled and its register; taken in hard interrupts
 * @irq_enabled: vectors that are let through
 * @notifier: uevents of recovery
 * @coredump: dump in the making
 * @inject: failures on purpose
 * @live: objects that exist
 * @load: for sysfs
 * @live_jobs: jobs not freed yet
 * @jobs_wait: woken when @live_jobs drops
 * @free_jobs: ended jobs that hold the last reference of their context
 * @free_work: frees them
 * @stats: counters for sysfs and debugfs
 */
struct enpu_device {
	struct drm_device drm;
	struct pci_dev *pdev;
	void __iomem *regs;
	void __iomem *doorbells;
	void __iomem *local_io;
	phys_addr_t local_phys;
	u64 local_bytes;
	struct mutex local_lock; /* see above */
	struct drm_mm local_mm;
	u64 local_free;

	u32 hw_version;
	u32 features;
	struct enpu_caps caps;
	s64 clock_ns;
	u32 max_command;
	u32 max_ring_log2;
	u32 num_queues;
	u32 num_as;
	u32 num_compute;
	u32 num_engines;
	struct enpu_engine *engines;

	struct mutex hw_lock; /* see above */
	struct enpu_queue *queues[ENPU_MAX_QUEUES];
	struct enpu_vm *vms[ENPU_MAX_AS];
	bool running;
	struct mutex door_lock; /* see above */
	bool doors_open;
	struct mutex dma_lock; /* see above */
	struct list_head dma;
	struct mutex tlb_lock; /* see above */
	bool wedged;
	struct pci_saved_state *config;

	struct workqueue_struct *recovery_wq;
	struct work_struct error_work;
	struct work_struct reset_work;
	unsigned long reset_request[BITS_TO_LONGS(ENPU_MAX_ENGINES + 1)];

	struct enpu_vector vectors[ENPU_MAX_VECTORS];
	spinlock_t irq_lock; /* see above */
	u32 irq_enabled;

	struct enpu_notifier notifier;
	struct enpu_coredump coredump;

	struct enpu_inject inject;
	struct enpu_live live;
	struct enpu_load load;
	atomic_t live_jobs;
	wait_queue_head_t jobs_wait;
	struct llist_head free_jobs;
	struct work_struct free_work;

	struct {
		atomic_t engine_resets;
		atomic_t device_resets;
		atomic_t failed_resets;
		atomic_t lost_interrupts;
		atomic_t lost_doorbells;
		atomic_t bad_fences;
		atomic_t irq_storms;
		atomic_t hangs;
		atomic_t faults;
		atomic_t ecc_corrected;
		atomic_t dumps;
		atomic_t dumps_dropped;
		atomic_t notices_dropped;
		atomic64_t busy_ns;
	} stats;
};

#define ENPU_RESET_DEVICE	ENPU_MAX_ENGINES

#define to_enpu_device(d) container_of(d, struct enpu_device, drm)

static inline u32 enpu_read32(struct enpu_device *edev, u32 reg)
{
	return readl(edev->regs + reg);
}

static inline u64 enpu_read64(struct enpu_device *edev, u32 reg)
{
	return readq(edev->regs + reg);
}

static inline void enpu_write32(struct enpu_device *edev, u32 reg, u32 value)
{
	writel(value, edev->regs + reg);
}

static inline void enpu_write64(struct enpu_device *edev, u32 reg, u64 value)
{
	writeq(value, edev->regs + reg);
}

/* The function was pulled out or lost its bus: every read is all ones. */
static inline bool enpu_device_gone(struct enpu_device *edev)
{
	return enpu_read32(edev, ENPU_REG_ID) == U32_MAX;
}

static inline bool enpu_is_wedged(struct enpu_device *edev)
{
	return READ_ONCE(edev->wedged);
}

int enpu_device_init(struct enpu_device *edev);
int enpu_engines_init(struct enpu_device *edev);
int enpu_hw_reset(struct enpu_device *edev);
void enpu_hw_enable(struct enpu_device *edev);
void enpu_hw_disable(struct enpu_device *edev);
int enpu_tlb_invalidate(struct enpu_device *edev, u32 as_id);

#endif
