// SPDX-License-Identifier: MIT
#include "context.h"

#include <cstdio>

#include "command/names.h"
#include "rules/rules.h"
#include "timeline.h"

using namespace enpu;

namespace {

constexpr uint32_t kMaxTimeoutMs = 600'000;

std::string format(const char* pattern, auto... values) {
    char text[320];
    std::snprintf(text, sizeof(text), pattern, values...);
    return text;
}

std::string packet_place(const drm_enpu_ctx_status& status) {
    return format("%s at byte %u of the command buffer", opcode_name(status.opcode).c_str(),
                  status.packet);
}

std::string refused(const drm_enpu_ctx_status& status) {
    std::string text = "the device refused " + packet_place(status);
    if (status.operand != 0xff)
        text += ": operand '" + operand_name(status.opcode, status.operand) + "'";
    if (status.rule != 0)
        text +=
            format(" breaks rule '%s'", rules::rule_name(static_cast<rules::Rule>(status.rule)));
    if (status.rule == 0 && status.hw_status == ENPU_STATUS_BAD_OPERAND)
        text += " holds a value out of range";
    return text;
}

std::string cause(const drm_enpu_ctx_status& status) {
    switch (status.error) {
        case -EFAULT:
            return format("VA 0x%llx is not mapped so that %s may use it",
                          (unsigned long long)status.fault_va, packet_place(status).c_str());
        case -EBADMSG:
            return refused(status);
        case -ETIMEDOUT:
            if (status.hw_status == ENPU_STATUS_WAIT_TIMEOUT)
                return "its wait ran out of time, " + packet_place(status);
            return "it made no progress within its time and its engine was reset";
        case -EREMOTEIO:
            return "DMA or memory error in " + packet_place(status);
        case -ESTALE:
            return "the reset of another job's engine tore it";
        case -ECANCELED:
            return "it was dropped unrun";
        case -ENODEV:
            return "the device was removed";
        case -EIO:
            return "the device does not answer any more, not even to a reset";
        case -ENOMEM:
            return "the device ran out of working memory in " + packet_place(status);
        default:
            return errno_text(status.error);
    }
}

void status_out(const drm_enpu_ctx_status& kernel, enpu_context_status* status) {
    *status = {};
    status->code = kernel.error;
    status->guilty = kernel.guilty;
    status->failed_seqno = kernel.failed_seqno;
    status->failed_job_id = kernel.failed_job_id;
    status->fault_va = kernel.fault_va;
    status->packet = kernel.packet;
    status->hw_status = kernel.hw_status;
    status->rule = kernel.rule;
    status->operand = kernel.error != 0 ? kernel.operand : 0xff;
    status->opcode = kernel.opcode;
    status->failed_jobs = kernel.failed_jobs;
    status->reset_count = kernel.reset_count;
    status->submitted = kernel.submitted;
    status->completed = kernel.completed;
    if (kernel.error != 0) {
        std::snprintf(status->message, sizeof(status->message), "%s",
                      describe_failure(kernel).c_str());
    }
}

int read_status(enpu_context* context, drm_enpu_ctx_status* kernel, enpu_error* error) {
    kernel->ctx_id = context->id;
    const int result = context->device->os->ctx_status(kernel);
    if (result != 0)
        return fail(error, result, "the context's status cannot be read: %s",
                    errno_text(result).c_str());
    return 0;
}

}  // namespace

std::string enpu::describe_failure(const drm_enpu_ctx_status& status) {
    return format("job %llu (id %llu) failed: ", (unsigned long long)status.failed_seqno,
                  (unsigned long long)status.failed_job_id) +
           cause(status);
}

int enpu_context_create(enpu_device* device, const enpu_context_config* config,
                        enpu_context** context, enpu_error* error) {
    if (device == nullptr || context == nullptr)
        return fail(error, -EINVAL, "enpu_context_create: an argument is NULL");
    *context = nullptr;
    const enpu_context_config defaults = {ENPU_PRIORITY_NORMAL, 0, 0, 0};
    if (config == nullptr) config = &defaults;
    if (config->priority > ENPU_PRIORITY_HIGH)
        return fail(error, -EINVAL, "enpu_context_create: priority %u is not known",
                    config->priority);
    if (config->timeout_ms > kMaxTimeoutMs) {
        return fail(error, -EINVAL, "enpu_context_create: timeout_ms is %u, at most %u is allowed",
                    config->timeout_ms, kMaxTimeoutMs);
    }
    if (config->max_jobs > ENPU_MAX_JOBS) {
        return fail(error, -EINVAL, "enpu_context_create: max_jobs is %u, at most %u is allowed",
                    config->max_jobs, ENPU_MAX_JOBS);
    }
    if (config->reserved != 0)
        return fail(error, -EINVAL, "enpu_context_create: reserved is not 0");
    return guard(error, [&] {
        drm_enpu_ctx_create create = {
            config->priority, config->timeout_ms, config->max_jobs, 0, 0, 0};
        const int result = device->os->ctx_create(&create);
        if (result == -EACCES)
            return fail(error, result, "a context of HIGH priority needs CAP_SYS_NICE");
        if (result != 0)
            return fail(error, result, "a context could not be made: %s",
                        errno_text(result).c_str());
        *context = new enpu_context(device, create.ctx_id);
        return 0;
    });
}

enpu_context* enpu_context_retain(enpu_context* context) {
    if (context != nullptr) context->retain();
    return context;
}

void enpu_context_release(enpu_context* context) {
    if (context != nullptr) context->release();
}

int enpu_context_get_status(enpu_context* context, enpu_context_status* status, enpu_error* error) {
    if (context == nullptr || status == nullptr)
        return fail(error, -EINVAL, "enpu_context_get_status: an argument is NULL");
    *status = {};
    return guard(error, [&] {
        drm_enpu_ctx_status kernel{};
        if (int r = read_status(context, &kernel, error)) return r;
        status_out(kernel, status);
        return 0;
    });
}

int enpu_context_wait(enpu_context* context, enpu_timeline* timeline, uint64_t value,
                      int64_t deadline_ns, enpu_error* error) {
    if (context == nullptr) return fail(error, -EINVAL, "enpu_context_wait: context is NULL");
    if (int r = enpu_timeline_wait(timeline, value, deadline_ns, error)) return r;
    return guard(error, [&] {
        drm_enpu_ctx_status kernel{};
        if (int r = read_status(context, &kernel, error)) return r;
        const uint32_t told =
            context->reported.exchange(kernel.failed_jobs, std::memory_order_relaxed);
        if (kernel.error == 0 || (kernel.failed_jobs == told && kernel.guilty == 0)) return 0;
        return fail(error, kernel.error, "%s", describe_failure(kernel).c_str());
    });
}
