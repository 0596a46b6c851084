// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: arithmetic of rings, page tables and errors, the checks of SUBMIT, the allocator of local
 * memory, and the page-table code on coherent memory of a device that is none. Built where the
 * kernel has CONFIG_KUNIT.
 */
#include <kunit/device.h>
#include <kunit/test.h>
#include <linux/dma-mapping.h>

#include "../enpu_device.h"
#include "../enpu_error.h"
#include "../enpu_local.h"
#include "../enpu_mmu.h"
#include "../enpu_pte.h"
#include "../enpu_ring.h"
#include "../enpu_submit_check.h"

/* The code under test, as it is; the module exports nothing. */
#include "../enpu_local_mm.c"
#include "../enpu_mmu.c"

static void enpu_test_ring(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, enpu_ring_slot(1, 7), 0);
	KUNIT_EXPECT_EQ(test, enpu_ring_slot(128, 7), 127);
	KUNIT_EXPECT_EQ(test, enpu_ring_slot(129, 7), 0);
	KUNIT_EXPECT_EQ(test, enpu_ring_slot(U64_MAX, 2), 2);
	KUNIT_EXPECT_EQ(test, enpu_ring_completions_offset(7), 4096 + 128 * 32);
	KUNIT_EXPECT_EQ(test, enpu_ring_bytes(7), 4096 + 128 * 64);
}

static void enpu_test_fence_plausible(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, enpu_ring_fence_plausible(5, 5, 5));
	KUNIT_EXPECT_TRUE(test, enpu_ring_fence_plausible(6, 5, 7));
	/* Backwards, and work that was never given. */
	KUNIT_EXPECT_FALSE(test, enpu_ring_fence_plausible(4, 5, 7));
	KUNIT_EXPECT_FALSE(test, enpu_ring_fence_plausible(8, 5, 7));
	KUNIT_EXPECT_FALSE(test, enpu_ring_fence_plausible(U64_MAX, 5, 7));
}

static void enpu_test_status_errno(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, enpu_status_errno(ENPU_STATUS_MMU_FAULT), -EFAULT);
	KUNIT_EXPECT_EQ(test, enpu_status_errno(ENPU_STATUS_TORN), -ESTALE);
	KUNIT_EXPECT_EQ(test, enpu_status_errno(ENPU_STATUS_WAIT_TIMEOUT), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, enpu_status_errno(ENPU_STATUS_ECC_UNCORRECTED), -EREMOTEIO);
	/* What a newer device may say. */
	KUNIT_EXPECT_EQ(test, enpu_status_errno(0xff), -EBADMSG);
}

static void enpu_test_va_range(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, enpu_va_range_valid(ENPU_VA_START, 4096));
	KUNIT_EXPECT_TRUE(test, enpu_va_range_valid(ENPU_VA_START, ENPU_VA_END - ENPU_VA_START));
	KUNIT_EXPECT_FALSE(test, enpu_va_range_valid(ENPU_VA_START, 0));
	KUNIT_EXPECT_FALSE(test, enpu_va_range_valid(ENPU_VA_START - 4096, 8192));
	KUNIT_EXPECT_FALSE(test, enpu_va_range_valid(ENPU_VA_END - 4096, 8192));
	KUNIT_EXPECT_FALSE(test, enpu_va_range_valid(ENPU_VA_START + 1, 4096));
	KUNIT_EXPECT_FALSE(test, enpu_va_range_valid(ENPU_VA_START, 4097));
	KUNIT_EXPECT_FALSE(test, enpu_va_range_valid(U64_MAX - 4095, 4096));
	KUNIT_EXPECT_FALSE(test, enpu_va_range_valid(ENPU_VA_START, U64_MAX - 4095));
}

static void enpu_test_sub_range(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, enpu_sub_range_valid(0, 4096, 4096));
	KUNIT_EXPECT_FALSE(test, enpu_sub_range_valid(0, 8192, 4096));
	KUNIT_EXPECT_FALSE(test, enpu_sub_range_valid(4096, 4096, 4096));
	KUNIT_EXPECT_FALSE(test, enpu_sub_range_valid(U64_MAX - 4095, 8192, 1 << 20));
}

static void enpu_test_leaf(struct kunit *test)
{
	const u64 large = ENPU_LARGE_PAGE_SIZE;

	KUNIT_EXPECT_EQ(test, enpu_leaf_size(large, 4 * large, large), large);
	KUNIT_EXPECT_EQ(test, enpu_leaf_size(large, 4 * large, large - 4096), 4096);
	KUNIT_EXPECT_EQ(test, enpu_leaf_size(large + 4096, 4 * large, 4 * large), 4096);
	KUNIT_EXPECT_EQ(test, enpu_leaf_size(large, 4 * large + 4096, 4 * large), 4096);
	KUNIT_EXPECT_EQ(test, enpu_pt_index(1ull << 39, 3), 1);
	KUNIT_EXPECT_EQ(test, enpu_pt_index(0xffffffffffffull, 0), 511);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(enpu_pte_leaf(0x123456789000, ENPU_PTE_READ)),
			0x123456789000 | ENPU_PTE_READ | ENPU_PTE_VALID);
}

/* A device with nothing but memory for page tables. */
static struct enpu_device *enpu_test_device(struct kunit *test)
{
	struct enpu_device *edev = kunit_kzalloc(test, sizeof(*edev), GFP_KERNEL);
	struct device *dev = kunit_device_register(test, "enpu-kunit");

	KUNIT_ASSERT_NOT_NULL(test, edev);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	KUNIT_ASSERT_EQ(test, dma_coerce_mask_and_coherent(dev, DMA_BIT_MASK(52)), 0);
	edev->drm.dev = dev;
	return edev;
}

/* What the device would find at a VA, or 0. */
static u64 enpu_test_walk(struct enpu_pt *pt, u64 va)
{
	unsigned int index = enpu_pt_index(va, pt->level);

	while (pt->level && pt->children[index]) {
		pt = pt->children[index];
		index = enpu_pt_index(va, pt->level);
	}
	return le64_to_cpu(pt->entries[index]);
}

static void enpu_test_map(struct kunit *test)
{
	struct enpu_device *edev = enpu_test_device(test);
	struct enpu_pt *root = enpu_pt_create_root(edev);
	const u64 large = ENPU_LARGE_PAGE_SIZE, va = 1ull << 40;
	LIST_HEAD(emptied);

	KUNIT_ASSERT_NOT_NULL(test, root);
	/* One small page, one large one, one small one. */
	KUNIT_ASSERT_EQ(test, enpu_pt_map(edev, root, va - 4096, large - 4096, large + 8192,
					  ENPU_PTE_READ), 0);
	KUNIT_EXPECT_EQ(test, enpu_test_walk(root, va - 4096),
			(large - 4096) | ENPU_PTE_READ | ENPU_PTE_VALID);
	KUNIT_EXPECT_EQ(test, enpu_test_walk(root, va + 12345),
			large | ENPU_PTE_READ | ENPU_PTE_LARGE | ENPU_PTE_VALID);
	KUNIT_EXPECT_EQ(test, enpu_test_walk(root, va + large),
			2 * large | ENPU_PTE_READ | ENPU_PTE_VALID);
	KUNIT_EXPECT_EQ(test, enpu_test_walk(root, va + large + 4096), 0);

	/* Cleared again, nothing but the root is left. */
	enpu_pt_clear(root, va - 4096, large + 8192, &emptied);
	KUNIT_EXPECT_EQ(test, root->used, 0);
	KUNIT_EXPECT_FALSE(test, list_empty(&emptied));
	enpu_pt_free_list(edev, &emptied);
	KUNIT_EXPECT_EQ(test, enpu_test_walk(root, va), 0);
	enpu_pt_destroy(edev, root);
}

static void enpu_test_clear_keeps_neighbours(struct kunit *test)
{
	struct enpu_device *edev = enpu_test_device(test);
	struct enpu_pt *root = enpu_pt_create_root(edev);
	const u64 va = 1ull << 30;
	LIST_HEAD(emptied);

	KUNIT_ASSERT_NOT_NULL(test, root);
	KUNIT_ASSERT_EQ(test, enpu_pt_map(edev, root, va, 0x10000, 3 * 4096, ENPU_PTE_WRITE), 0);
	enpu_pt_clear(root, va + 4096, 4096, &emptied);
	KUNIT_EXPECT_TRUE(test, list_empty(&emptied));
	KUNIT_EXPECT_NE(test, enpu_test_walk(root, va), 0);
	KUNIT_EXPECT_EQ(test, enpu_test_walk(root, va + 4096), 0);
	KUNIT_EXPECT_NE(test, enpu_test_walk(root, va + 8192), 0);
	/* A large page fits only after the table below has gone. */
	enpu_pt_clear(root, va, 3 * 4096, &emptied);
	enpu_pt_free_list(edev, &emptied);
	KUNIT_EXPECT_EQ(test, enpu_pt_map(edev, root, va, 0, ENPU_LARGE_PAGE_SIZE, 0), 0);
	KUNIT_EXPECT_EQ(test, enpu_test_walk(root, va), ENPU_PTE_LARGE | ENPU_PTE_VALID);
	enpu_pt_destroy(edev, root);
}

/* A device with nothing but local memory, of @bytes. */
static struct enpu_device *enpu_test_local(struct kunit *test, u64 bytes)
{
	struct enpu_device *edev = kunit_kzalloc(test, sizeof(*edev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, edev);
	mutex_init(&edev->local_lock);
	edev->local_bytes = bytes;
	edev->local_free = bytes;
	drm_mm_init(&edev->local_mm, 0, bytes);
	return edev;
}

static void enpu_test_local_round_up(struct kunit *test)
{
	const u64 large = ENPU_LARGE_PAGE_SIZE;

	KUNIT_EXPECT_EQ(test, enpu_local_round_up(1), 4096);
	KUNIT_EXPECT_EQ(test, enpu_local_round_up(4096), 4096);
	KUNIT_EXPECT_EQ(test, enpu_local_round_up(4097), 8192);
	/* One that nearly fills a large page stays small. */
	KUNIT_EXPECT_EQ(test, enpu_local_round_up(large - 4096), large - 4096);
	KUNIT_EXPECT_EQ(test, enpu_local_round_up(large), large);
	KUNIT_EXPECT_EQ(test, enpu_local_round_up(large + 1), 2 * large);
}

static void enpu_test_local_alloc(struct kunit *test)
{
	const u64 large = ENPU_LARGE_PAGE_SIZE;
	struct enpu_device *edev = enpu_test_local(test, 8 * large);
	struct drm_mm_node small = {}, big = {}, rest = {}, more = {};
	struct enpu_local_usage usage;

	/* Small ones go to the top, large ones lie on large pages below. */
	KUNIT_ASSERT_EQ(test, enpu_local_alloc(edev, &small, 4096), 0);
	KUNIT_EXPECT_EQ(test, small.start, 8 * large - 4096);
	KUNIT_ASSERT_EQ(test, enpu_local_alloc(edev, &big, 3 * large), 0);
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED(big.start, large));
	enpu_local_usage(edev, &usage);
	KUNIT_EXPECT_EQ(test, usage.total, 8 * large);
	KUNIT_EXPECT_EQ(test, usage.free, 5 * large - 4096);
	KUNIT_EXPECT_EQ(test, usage.largest, 5 * large - 4096);

	/* There are five large pages' worth of room but for one page, so four fit. */
	KUNIT_EXPECT_EQ(test, enpu_local_alloc(edev, &more, 5 * large), -ENOSPC);
	KUNIT_EXPECT_FALSE(test, drm_mm_node_allocated(&more));
	KUNIT_EXPECT_EQ(test, enpu_local_alloc(edev, &rest, 4 * large), 0);
	KUNIT_EXPECT_EQ(test, enpu_local_alloc(edev, &more, large), -ENOSPC);
	KUNIT_ASSERT_EQ(test, enpu_local_alloc(edev, &more, large - 4096), 0);
	enpu_local_usage(edev, &usage);
	KUNIT_EXPECT_EQ(test, usage.free, 0);
	KUNIT_EXPECT_EQ(test, usage.largest, 0);

	/* What is given back is whole again, in whatever order. */
	enpu_local_release(edev, &big);
	enpu_local_release(edev, &small);
	enpu_local_release(edev, &rest);
	enpu_local_release(edev, &more);
	enpu_local_usage(edev, &usage);
	KUNIT_EXPECT_EQ(test, usage.free, 8 * large);
	KUNIT_EXPECT_EQ(test, usage.largest, 8 * large);
	drm_mm_takedown(&edev->local_mm);
}

static void enpu_test_local_never_overlaps(struct kunit *test)
{
	const u64 large = ENPU_LARGE_PAGE_SIZE;
	struct enpu_device *edev = enpu_test_local(test, 4 * large);
	const u32 count = 24;
	struct drm_mm_node *nodes = kunit_kcalloc(test, count, sizeof(*nodes), GFP_KERNEL);
	u64 size, taken = 0;
	u32 round, i, j, r = 1;

	KUNIT_ASSERT_NOT_NULL(test, nodes);
	for (round = 0; round < 400; round++) {
		r = r * 1664525 + 1013904223;
		i = (r >> 16) % count;
		if (drm_mm_node_allocated(&nodes[i])) {
			taken -= nodes[i].size;
			enpu_local_release(edev, &nodes[i]);
			continue;
		}
		size = enpu_local_round_up((r >> 3) % (large + large / 2) + 1);
		if (enpu_local_alloc(edev, &nodes[i], size))
			continue;
		taken += size;
		KUNIT_ASSERT_LE(test, nodes[i].start + size, 4 * large);
		for (j = 0; j < count; j++)
			KUNIT_ASSERT_TRUE(test, j == i || !drm_mm_node_allocated(&nodes[j]) ||
					  nodes[j].start + nodes[j].size <= nodes[i].start ||
					  nodes[i].start + size <= nodes[j].start);
		KUNIT_ASSERT_EQ(test, edev->local_free, 4 * large - taken);
	}
	for (i = 0; i < count; i++)
		if (drm_mm_node_allocated(&nodes[i]))
			enpu_local_release(edev, &nodes[i]);
	KUNIT_EXPECT_EQ(test, edev->local_free, 4 * large);
	drm_mm_takedown(&edev->local_mm);
}

/* Checks a SUBMIT that differs in one member from one that is right. */
#define ENPU_EXPECT_SUBMIT(_test, _ret, _member, _value) do {				\
	struct drm_enpu_submit _args = {						\
		.cmd_va = ENPU_VA_START, .cmd_bytes = 4096, .sync_count = 1,		\
		.sync_stride = sizeof(struct drm_enpu_sync_op), .bo_count = 1,		\
	};										\
											\
	_args._member = (_value);							\
	KUNIT_EXPECT_EQ_MSG(_test, enpu_submit_check(edev, &_args), _ret, #_member	\
			    " = " #_value);						\
} while (0)

static void enpu_test_submit_check(struct kunit *test)
{
	struct enpu_device *edev = kunit_kzalloc(test, sizeof(*edev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, edev);
	edev->num_engines = 3;
	edev->max_command = 1 << 20;

	ENPU_EXPECT_SUBMIT(test, 0, engine, 2);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, engine, 3);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, engine, U32_MAX);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, flags, 1);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, pad, 1);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, seqno, 1);
	ENPU_EXPECT_SUBMIT(test, 0, job_id, U64_MAX);

	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_bytes, 0);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_bytes, ENPU_PACKET_ALIGN - 1);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_bytes, 4096 + 1);
	ENPU_EXPECT_SUBMIT(test, 0, cmd_bytes, 1 << 20);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_bytes, (1 << 20) + ENPU_PACKET_ALIGN);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_bytes, U32_MAX);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_va, 0);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_va, ENPU_VA_START + 1);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_va, ENPU_VA_START - ENPU_PACKET_ALIGN);
	ENPU_EXPECT_SUBMIT(test, 0, cmd_va, ENPU_VA_END - 4096);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_va, ENPU_VA_END - 4096 + ENPU_PACKET_ALIGN);
	/* The end wraps. */
	ENPU_EXPECT_SUBMIT(test, -EINVAL, cmd_va, U64_MAX - ENPU_PACKET_ALIGN + 1);

	ENPU_EXPECT_SUBMIT(test, 0, sync_count, ENPU_MAX_SYNC_OPS);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, sync_count, ENPU_MAX_SYNC_OPS + 1);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, sync_count, U32_MAX);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, sync_stride, 0);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, sync_stride, sizeof(struct drm_enpu_sync_op) - 1);
	/* A newer program's structure. */
	ENPU_EXPECT_SUBMIT(test, 0, sync_stride, ENPU_MAX_SYNC_STRIDE);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, sync_stride, ENPU_MAX_SYNC_STRIDE + 1);
	ENPU_EXPECT_SUBMIT(test, 0, bo_count, ENPU_MAX_SUBMIT_BOS);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, bo_count, ENPU_MAX_SUBMIT_BOS + 1);
	ENPU_EXPECT_SUBMIT(test, -EINVAL, bo_count, U32_MAX);
}

static void enpu_test_submit_elements(struct kunit *test)
{
	struct drm_enpu_sync_op op = { .handle = U32_MAX, .point = U64_MAX };
	struct drm_enpu_submit_bo bo = { .handle = U32_MAX };

	KUNIT_EXPECT_TRUE(test, enpu_submit_sync_valid(&op));
	op.flags = DRM_ENPU_SYNC_SIGNAL;
	KUNIT_EXPECT_TRUE(test, enpu_submit_sync_valid(&op));
	op.flags = DRM_ENPU_SYNC_SIGNAL << 1;
	KUNIT_EXPECT_FALSE(test, enpu_submit_sync_valid(&op));
	/* A BO that is neither read nor written is a mistake. */
	KUNIT_EXPECT_FALSE(test, enpu_submit_bo_valid(&bo));
	bo.flags = DRM_ENPU_SUBMIT_BO_READ;
	KUNIT_EXPECT_TRUE(test, enpu_submit_bo_valid(&bo));
	bo.flags = DRM_ENPU_SUBMIT_BO_READ | DRM_ENPU_SUBMIT_BO_WRITE;
	KUNIT_EXPECT_TRUE(test, enpu_submit_bo_valid(&bo));
	bo.flags = U32_MAX;
	KUNIT_EXPECT_FALSE(test, enpu_submit_bo_valid(&bo));
}

static struct kunit_case enpu_cases[] = {
	KUNIT_CASE(enpu_test_ring),
	KUNIT_CASE(enpu_test_fence_plausible),
	KUNIT_CASE(enpu_test_status_errno),
	KUNIT_CASE(enpu_test_va_range),
	KUNIT_CASE(enpu_test_sub_range),
	KUNIT_CASE(enpu_test_leaf),
	KUNIT_CASE(enpu_test_map),
	KUNIT_CASE(enpu_test_clear_keeps_neighbours),
	KUNIT_CASE(enpu_test_local_round_up),
	KUNIT_CASE(enpu_test_local_alloc),
	KUNIT_CASE(enpu_test_local_never_overlaps),
	KUNIT_CASE(enpu_test_submit_check),
	KUNIT_CASE(enpu_test_submit_elements),
	{}
};

static struct kunit_suite enpu_suite = {
	.name = "enpu",
	.test_cases = enpu_cases,
};

kunit_test_suite(enpu_suite);

MODULE_DESCRIPTION("KUnit tests of the enpu driver");
MODULE_LICENSE("GPL");
