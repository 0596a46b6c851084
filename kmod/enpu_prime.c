// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sharing BOs with other devices. Host BOs go through the DRM helpers. A local BO has no pages:
 * only an importer that takes peer-to-peer addresses gets it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/drm_prime.h>

#include "enpu_bo.h"
#include "enpu_compat.h"
#include "enpu_device.h"
#include "enpu_inject.h"
#include "enpu_pm.h"

#if ENPU_HAVE_DMA_BUF_NS_TOKEN
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif

static int enpu_local_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	return attach->peer2peer ? 0 : -EOPNOTSUPP;
}

static struct sg_table *enpu_local_map_dma_buf(struct dma_buf_attachment *attach,
					       enum dma_data_direction dir)
{
	struct drm_gem_object *obj = attach->dmabuf->priv;
	struct enpu_device *edev = to_enpu_device(obj->dev);
	struct sg_table *sgt;
	dma_addr_t addr;
	int ret;

	/* One scatterlist entry. */
	if (obj->size > UINT_MAX)
		return ERR_PTR(-EOPNOTSUPP);
	if (drm_dev_is_unplugged(obj->dev))
		return ERR_PTR(-ENODEV);
	/* Whoever has the addresses may use them at any time. */
	ret = enpu_pm_get(edev);
	if (ret)
		return ERR_PTR(ret);
	ret = -ENOMEM;
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		goto put_pm;
	ret = sg_alloc_table(sgt, 1, GFP_KERNEL);
	if (ret)
		goto free_table;

	addr = dma_map_resource(attach->dev, edev->local_phys + to_enpu_bo(obj)->node.start,
				obj->size, dir, DMA_ATTR_SKIP_CPU_SYNC);
	ret = dma_mapping_error(attach->dev, addr);
	if (ret)
		goto free_sg;
	sg_set_page(sgt->sgl, NULL, obj->size, 0);
	sg_dma_address(sgt->sgl) = addr;
	sg_dma_len(sgt->sgl) = obj->size;
	return sgt;

free_sg:
	sg_free_table(sgt);
free_table:
	kfree(sgt);
put_pm:
	enpu_pm_put(edev);
	return ERR_PTR(ret);
}

static void enpu_local_unmap_dma_buf(struct dma_buf_attachment *attach, struct sg_table *sgt,
				     enum dma_data_direction dir)
{
	struct drm_gem_object *obj = attach->dmabuf->priv;

	dma_unmap_resource(attach->dev, sg_dma_address(sgt->sgl), sg_dma_len(sgt->sgl), dir,
			   DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(sgt);
	enpu_pm_put(to_enpu_device(obj->dev));
}

static const struct dma_buf_ops enpu_local_dma_buf_ops = {
	.attach = enpu_local_attach,
	.map_dma_buf = enpu_local_map_dma_buf,
	.unmap_dma_buf = enpu_local_unmap_dma_buf,
	.release = drm_gem_dmabuf_release,
	.mmap = drm_gem_dmabuf_mmap,
};

/*
 * Ours before any importer's: the shmem helper maps with cache maintenance, importers without, and
 * the DMA API wants them in this order.
 */
static int enpu_map_own(struct enpu_bo *bo)
{
	struct drm_device *drm = enpu_bo_gem(bo)->dev;
	struct sg_table *sgt = ERR_PTR(-ENOMEM);
	int idx;

	if (!drm_dev_enter(drm, &idx))
		return -ENODEV;
	if (!enpu_inject_fail(to_enpu_device(drm)))
		sgt = enpu_bo_sgt(bo);
	drm_dev_exit(idx);
	return PTR_ERR_OR_ZERO(sgt);
}

struct dma_buf *enpu_prime_export(struct drm_gem_object *obj, int flags)
{
	struct enpu_bo *bo = to_enpu_bo(obj);
	struct dma_buf_export_info info = {
		.exp_name = KBUILD_MODNAME,
		.owner = THIS_MODULE,
		.ops = &enpu_local_dma_buf_ops,
		.size = obj->size,
		.flags = flags,
		.priv = obj,
		.resv = obj->resv,
	};

	int ret;

	if (bo->vm_obj || bo->kind == ENPU_BO_USERPTR)
		return ERR_PTR(-EPERM);
	if (bo->kind != ENPU_BO_LOCAL) {
		ret = enpu_map_own(bo);
		return ret ? ERR_PTR(ret) : drm_gem_prime_export(obj, flags);
	}
	return drm_gem_dmabuf_export(obj->dev, &info);
}

/*
 * An exporter may keep the mapping as long as we are attached, so that ends, too. What is left is a
 * BO without memory, and the reference of the buffer.
 */
static void enpu_import_unmap(struct enpu_dma *dma)
{
	struct enpu_bo *bo = container_of(dma, struct enpu_bo, dma);
	struct drm_gem_object *obj = enpu_bo_gem(bo);
	struct dma_buf_attachment *attach = obj->import_attach;

	bo->buf = attach->dmabuf;
	obj->import_attach = NULL;
	dma_buf_unmap_attachment_unlocked(attach, bo->shmem.sgt, DMA_BIDIRECTIONAL);
	bo->shmem.sgt = NULL;
	dma_buf_detach(bo->buf, attach);
	atomic_dec(&to_enpu_device(obj->dev)->live.dma);
}

static void enpu_import_added(struct enpu_bo *bo)
{
	struct enpu_device *edev = to_enpu_device(enpu_bo_gem(bo)->dev);

	if (enpu_dma_add(edev, &bo->dma, enpu_import_unmap))
		atomic_inc(&edev->live.dma);
	enpu_bo_count(bo);
}

/*
 * Our own local BOs come back as themselves; drm_gem_prime_import() knows this of its own exports
 * only.
 */
struct drm_gem_object *enpu_prime_import(struct drm_device *drm, struct dma_buf *buf)
{
	struct drm_gem_object *obj;
	int idx;

	if (buf->ops == &enpu_local_dma_buf_ops) {
		obj = buf->priv;
		if (obj->dev == drm) {
			drm_gem_object_get(obj);
			return obj;
		}
	}
	if (!drm_dev_enter(drm, &idx))
		return ERR_PTR(-ENODEV);
	obj = drm_gem_prime_import(drm, buf);
	if (!IS_ERR(obj) && to_enpu_bo(obj)->kind == ENPU_BO_IMPORTED)
		enpu_import_added(to_enpu_bo(obj));
	drm_dev_exit(idx);
	return obj;
}
