// SPDX-License-Identifier: MIT
// Commands of the HAL as packets of libenpu, and graphs made of them.
#include <cstring>
#include <exception>

#include "arguments.h"
#include "npu.h"
#include "op_table.h"
#include "status.h"

namespace enpu::hal::npu {
namespace {

uint32_t append_dispatch(enpu_builder* builder, const enpu_hal_dispatch* dispatch,
                         enpu_hal_status* status) {
    if (uint32_t code = check_dispatch_structure(dispatch, status)) return code;
    PacketStorage storage;
    if (uint32_t code = translate(*dispatch, storage, status)) return code;
    const OpInfo& info = *find_op(dispatch->op);
    enpu_operand operands[ENPU_OP_MAX_OPERANDS];
    const enpu_operand* pointers[ENPU_OP_MAX_OPERANDS];
    for (uint32_t i = 0; i < info.operands; ++i) {
        pointers[i] = nullptr;
        if (storage.packet().operands[i].dtype == ENPU_DTYPE_NONE) continue;
        const enpu_hal_place& place = dispatch->operands[i].place;
        if (!place.buffer)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: operand '%s' has no buffer",
                        info.name, info.operand_names[i]);
        operands[i] = {place.buffer->handle, place.offset, storage.packet().operands[i]};
        pointers[i] = &operands[i];
    }
    enpu_error error;
    if (enpu_build_operator(builder, opcode_of(dispatch->op), dispatch->params, info.params_bytes,
                            pointers, info.operands, &error) < 0)
        return fail_with(status, error);
    return ENPU_HAL_OK;
}

uint32_t append_copy(enpu_builder* builder, const enpu_hal_copy& copy, enpu_hal_status* status) {
    if (!copy.dst.buffer || !copy.src.buffer)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: no buffer given");
    if (copy.height == 0 || copy.height > UINT32_MAX || copy.width == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: width or height is 0 or too large");
    enpu_copy_2d packet{};
    packet.dst = copy.dst.buffer->handle;
    packet.src = copy.src.buffer->handle;
    packet.dst_offset = copy.dst.offset;
    packet.src_offset = copy.src.offset;
    packet.width = copy.width;
    packet.height = static_cast<uint32_t>(copy.height);
    // The pitch of a single row means nothing.
    packet.dst_pitch = copy.height > 1 ? copy.dst_pitch : copy.width;
    packet.src_pitch = copy.height > 1 ? copy.src_pitch : copy.width;
    enpu_error error;
    return enpu_build_copy_2d(builder, &packet, &error) < 0 ? fail_with(status, error)
                                                            : uint32_t(ENPU_HAL_OK);
}

uint32_t append_fill(enpu_builder* builder, const enpu_hal_fill& fill, enpu_hal_status* status) {
    if (!fill.dst.buffer) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "fill: no buffer given");
    enpu_error error;
    return enpu_build_fill(builder, fill.dst.buffer->handle, fill.dst.offset, fill.bytes,
                           fill.pattern, fill.pattern_bytes, &error) < 0
               ? fail_with(status, error)
               : uint32_t(ENPU_HAL_OK);
}

uint32_t append_timestamp(enpu_builder* builder, const enpu_hal_place& place,
                          enpu_hal_status* status) {
    if (!place.buffer) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "timestamp: no buffer given");
    enpu_error error;
    return enpu_build_timestamp(builder, place.buffer->handle, place.offset, &error) < 0
               ? fail_with(status, error)
               : uint32_t(ENPU_HAL_OK);
}

uint32_t shape_of(const enpu_hal_command& command, enpu_hal_graph::Shape& shape,
                  enpu_hal_status* status) {
    std::memset(&shape.command, 0, sizeof(shape.command));
    shape.kind = command.kind;
    switch (command.kind) {
        case ENPU_HAL_COMMAND_DISPATCH:
            if (uint32_t code = check_dispatch_structure(command.u.dispatch, status)) return code;
            return translate(*command.u.dispatch, shape.dispatch, status);
        case ENPU_HAL_COMMAND_COPY:
            shape.command.u.copy = command.u.copy;
            shape.command.u.copy.dst = shape.command.u.copy.src = {};
            break;
        case ENPU_HAL_COMMAND_FILL:
            shape.command.u.fill = command.u.fill;
            shape.command.u.fill.dst = {};
            break;
    }
    return ENPU_HAL_OK;
}

bool same_shape(const enpu_hal_graph::Shape& a, const enpu_hal_graph::Shape& b) {
    if (a.kind != b.kind) return false;
    if (a.kind == ENPU_HAL_COMMAND_DISPATCH)
        return a.dispatch.packet().header.size == b.dispatch.packet().header.size &&
               std::memcmp(&a.dispatch, &b.dispatch, a.dispatch.packet().header.size) == 0;
    return std::memcmp(&a.command.u, &b.command.u, sizeof(a.command.u)) == 0;
}

uint32_t finish_chunk(enpu_builder* builder, enpu_hal_graph& graph, uint32_t first,
                      enpu_hal_status* status) {
    enpu_command* command = nullptr;
    enpu_error error;
    if (enpu_builder_finish(builder, &command, &error) != 0) return fail_with(status, error);
    graph.chunks.push_back({command, first});
    return ENPU_HAL_OK;
}

// Everything into chunks of at most the device's command size.
uint32_t build_graph(enpu_hal_graph& graph, enpu_builder* builder, const enpu_hal_command* commands,
                     uint32_t count, enpu_hal_status* status) {
    const uint64_t most = enpu_device_get_info(graph.device->handle)->max_command_bytes;
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (i > first && enpu_builder_bytes(builder) + kMaxPacketBytes > most) {
            if (uint32_t code = finish_chunk(builder, graph, first, status)) return code;
            first = i;
        }
        uint32_t code = commands[i].kind == ENPU_HAL_COMMAND_HOST_CALL
                            ? fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: no host calls")
                            : append(builder, commands[i], status);
        if (code == ENPU_HAL_OK) code = shape_of(commands[i], graph.shapes[i], status);
        if (code != ENPU_HAL_OK) {
            if (status) status->op_id = i + 1;
            return code;
        }
    }
    return finish_chunk(builder, graph, first, status);
}

uint32_t graph_create(enpu_hal_device* device, const enpu_hal_command* commands, uint32_t count,
                      enpu_hal_graph** graph, enpu_hal_status* status) {
    if (count == 0 || !commands)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: has no commands");
    enpu_error error;
    enpu_builder* builder = nullptr;
    if (enpu_builder_create(device->handle, ENPU_ENGINE_KIND_COMPUTE, &builder, &error) != 0)
        return fail_with(status, error);
    uint32_t code;
    try {
        auto made = std::make_unique<enpu_hal_graph>(device);
        made->shapes.resize(count);
        code = build_graph(*made, builder, commands, count, status);
        if (code == ENPU_HAL_OK) *graph = made.release();
    } catch (const std::exception&) {
        code = fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "graph: no host memory for %u commands",
                    count);
    }
    enpu_builder_release(builder);
    return code;
}

void graph_destroy(enpu_hal_graph* graph) {
    delete graph;
}

struct NewPlace {
    uint32_t operand;
    enpu_hal_place place;
};

uint32_t places_of(const enpu_hal_command& command, NewPlace (&places)[ENPU_OP_MAX_OPERANDS]) {
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            places[0] = {0, command.u.copy.dst};
            places[1] = {1, command.u.copy.src};
            return 2;
        case ENPU_HAL_COMMAND_FILL:
            places[0] = {0, command.u.fill.dst};
            return 1;
        case ENPU_HAL_COMMAND_TIMESTAMP:
            places[0] = {0, command.u.timestamp.dst};
            return 1;
        case ENPU_HAL_COMMAND_DISPATCH:
            break;
        default:
            return 0;
    }
    uint32_t count = 0;
    const enpu_hal_dispatch& dispatch = *command.u.dispatch;
    for (uint32_t i = 0; i < dispatch.operand_count; ++i)
        if (dispatch.operands[i].tensor.dtype != ENPU_OP_NONE)
            places[count++] = {i, dispatch.operands[i].place};
    return count;
}

uint32_t graph_update(enpu_hal_graph* graph, uint32_t index, const enpu_hal_command* command,
                      enpu_hal_status* status) {
    if (index >= graph->shapes.size())
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: has no command %u", index);
    enpu_hal_graph::Shape shape;
    if (uint32_t code = shape_of(*command, shape, status)) return code;
    if (!same_shape(shape, graph->shapes[index]))
        return fail(status, ENPU_HAL_UNSUPPORTED,
                    "graph: an update of command %u may change addresses only", index);
    size_t chunk = graph->chunks.size() - 1;
    while (graph->chunks[chunk].first > index) --chunk;
    NewPlace places[ENPU_OP_MAX_OPERANDS];
    const uint32_t count = places_of(*command, places);
    for (uint32_t i = 0; i < count; ++i) {
        enpu_error error;
        if (!places[i].place.buffer)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: operand %u has no buffer",
                        places[i].operand);
        if (enpu_command_patch(graph->chunks[chunk].command, index - graph->chunks[chunk].first,
                               places[i].operand, places[i].place.buffer->handle,
                               places[i].place.offset, &error) != 0)
            return fail_with(status, error);
    }
    return ENPU_HAL_OK;
}

uint32_t graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                      const enpu_hal_submission* submission, uint64_t deadline_ns,
                      enpu_hal_status* status) {
    if (uint32_t code = check_submission(submission, kMaxCommands, kMaxPoints, status)) return code;
    bind_signals(*queue, *submission);
    return queue->channel->launch(*graph, *submission, deadline_ns, status);
}

}  // namespace

uint32_t append(enpu_builder* builder, const enpu_hal_command& command, enpu_hal_status* status) {
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            return append_copy(builder, command.u.copy, status);
        case ENPU_HAL_COMMAND_FILL:
            return append_fill(builder, command.u.fill, status);
        case ENPU_HAL_COMMAND_DISPATCH:
            return append_dispatch(builder, command.u.dispatch, status);
        case ENPU_HAL_COMMAND_TIMESTAMP:
            return append_timestamp(builder, command.u.timestamp.dst, status);
        case ENPU_HAL_COMMAND_HOST_CALL:
            return fail(status, ENPU_HAL_UNSUPPORTED, "the device cannot call the host");
    }
    return fail(status, ENPU_HAL_UNSUPPORTED, "command kind %u is unknown", command.kind);
}

const enpu_hal_graph_table kGraph = {
    table_header(sizeof(enpu_hal_graph_table), ENPU_HAL_TYPE_GRAPH_TABLE), graph_create,
    graph_destroy, graph_update, graph_launch};

}  // namespace enpu::hal::npu
