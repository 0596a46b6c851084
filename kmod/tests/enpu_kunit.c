// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: arithmetic of rings, page tables and errors, and the page-table code on coherent memory of
 * a device that is none. Built where the kernel has CONFIG_KUNIT.
 */
#include <kunit/device.h>
#include <kunit/test.h>
#include <linux/dma-mapping.h>

#include "../enpu_device.h"
#include "../enpu_error.h"
#include "../enpu_mmu.h"
#include "../enpu_pte.h"
#include "../enpu_ring.h"

/* The code under test, as it is; the module exports nothing. */
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

static struct kunit_case enpu_cases[] = {
	KUNIT_CASE(enpu_test_ring),
	KUNIT_CASE(enpu_test_fence_plausible),
	KUNIT_CASE(enpu_test_status_errno),
	KUNIT_CASE(enpu_test_va_range),
	KUNIT_CASE(enpu_test_sub_range),
	KUNIT_CASE(enpu_test_leaf),
	KUNIT_CASE(enpu_test_map),
	KUNIT_CASE(enpu_test_clear_keeps_neighbours),
	{}
};

static struct kunit_suite enpu_suite = {
	.name = "enpu",
	.test_cases = enpu_cases,
};

kunit_test_suite(enpu_suite);

MODULE_DESCRIPTION("KUnit tests of the enpu driver");
MODULE_LICENSE("GPL");
