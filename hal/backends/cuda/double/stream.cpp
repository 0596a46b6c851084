// SPDX-License-Identifier: MIT
// Streams, events and graphs of the double.
#include <chrono>
#include <ctime>

#include "double.h"

namespace enpu::hal::cuda {

void StreamWorker::begin() {
    std::thread([self = shared_from_this()] { self->loop(); }).detach();
}

void StreamWorker::add(Operation operation) {
    {
        std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(operation));
    }
    changed_.notify_all();
}

void StreamWorker::end() {
    {
        std::lock_guard lock(mutex_);
        ended_ = true;
    }
    changed_.notify_all();
}

bool StreamWorker::idle() {
    std::lock_guard lock(mutex_);
    return waiting_.empty() && !busy_;
}

void StreamWorker::loop() {
    fake::World& w = fake::world();
    for (;;) {
        Operation operation;
        {
            std::unique_lock lock(mutex_);
            busy_ = false;
            changed_.wait(lock, [&] { return !waiting_.empty() || ended_; });
            if (waiting_.empty()) return;
            operation = std::move(waiting_.front());
            waiting_.pop_front();
            busy_ = true;
        }
        {
            std::unique_lock lock(w.hang_mutex);
            w.hang_changed.wait(lock, [&] { return !w.hang; });
        }
        if (const uint64_t delay = w.delay_us.load())
            std::this_thread::sleep_for(std::chrono::microseconds(delay));
        if (context_->sticky.load() != kSuccess) continue;  // nothing runs in a broken context
        if (const Result error = operation()) context_->sticky.store(error);
    }
}

namespace fake {
namespace {

uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return uint64_t(time.tv_sec) * 1'000'000'000u + uint64_t(time.tv_nsec);
}

template <typename Field>
void count(Field field, int64_t change) {
    std::lock_guard lock(world().mutex);
    world().live.*field += change;
}
using Live = enpu_cuda_double_objects;

}  // namespace

Result enqueue(Stream stream, Operation operation) {
    if (!stream) return kInvalidValue;
    if (stream->capture)
        stream->capture->operations.push_back(std::move(operation));
    else
        stream->worker->add(std::move(operation));
    return kSuccess;
}

Result cuStreamCreateWithPriority(Stream* stream, unsigned, int) {
    ENPU_DOUBLE_ENTER(cuStreamCreateWithPriority);
    auto made = std::make_unique<StreamObject>(
        StreamObject{current(), std::make_shared<StreamWorker>(current()), nullptr});
    made->worker->begin();
    *stream = made.get();
    std::lock_guard lock(world().mutex);
    ++world().live.streams;
    world().streams.emplace(made.get(), std::move(made));
    return kSuccess;
}

// As with the driver, work that is under way goes on.
Result cuStreamDestroy(Stream stream) {
    (void)enter("cuStreamDestroy");
    stream->worker->end();
    decltype(World::streams)::node_type gone;  // ends after the lock
    std::lock_guard lock(world().mutex);
    gone = world().streams.extract(stream);
    --world().live.streams;
    return kSuccess;
}

Result cuStreamQuery(Stream stream) {
    ENPU_DOUBLE_ENTER(cuStreamQuery);
    return stream->worker->idle() ? kSuccess : kNotReady;
}

Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
    ENPU_DOUBLE_ENTER(cuStreamWaitEvent);
    uint64_t wanted = 0;
    {
        std::lock_guard lock(event->state->mutex);
        wanted = event->state->recorded;
    }
    return enqueue(stream, [state = event->state, wanted, context = stream->context] {
        std::unique_lock lock(state->mutex);
        // A broken context ends the wait: the record will never come.
        while (state->completed < wanted && context->sticky.load() == kSuccess)
            state->changed.wait_for(lock, std::chrono::milliseconds(5));
        return kSuccess;
    });
}

Result cuEventCreate(Event* event, unsigned) {
    ENPU_DOUBLE_ENTER(cuEventCreate);
    *event = new EventObject{current()};
    count(&Live::events, 1);
    return kSuccess;
}

Result cuEventDestroy(Event event) {
    (void)enter("cuEventDestroy");
    delete event;
    count(&Live::events, -1);
    return kSuccess;
}

Result cuEventRecord(Event event, Stream stream) {
    ENPU_DOUBLE_ENTER(cuEventRecord);
    uint64_t number = 0;
    {
        std::lock_guard lock(event->state->mutex);
        number = ++event->state->recorded;
    }
    return enqueue(stream, [state = event->state, number] {
        {
            std::lock_guard lock(state->mutex);
            state->completed = number;
            state->time_ns = now();
        }
        state->changed.notify_all();
        return kSuccess;
    });
}

Result cuEventQuery(Event event) {
    ENPU_DOUBLE_ENTER(cuEventQuery);
    std::lock_guard lock(event->state->mutex);
    return event->state->completed == event->state->recorded ? kSuccess : kNotReady;
}

Result cuEventElapsedTime(float* milliseconds, Event start, Event end) {
    ENPU_DOUBLE_ENTER(cuEventElapsedTime);
    std::scoped_lock lock(start->state->mutex, end->state->mutex);
    *milliseconds = static_cast<float>(double(end->state->time_ns - start->state->time_ns) * 1e-6);
    return kSuccess;
}

Result cuLaunchHostFunc(Stream stream, HostFunction function, void* context) {
    ENPU_DOUBLE_ENTER(cuLaunchHostFunc);
    return enqueue(stream, [function, context] {
        function(context);
        return kSuccess;
    });
}

Result cuStreamBeginCapture(Stream stream, int mode) {
    ENPU_DOUBLE_ENTER(cuStreamBeginCapture);
    if (stream->capture || mode != kCaptureRelaxed) return kInvalidValue;
    stream->capture = std::make_unique<GraphObject>();
    return kSuccess;
}

Result cuStreamEndCapture(Stream stream, Graph* graph) {
    if (!stream->capture) return kInvalidValue;
    std::unique_ptr<GraphObject> captured = std::move(stream->capture);
    ENPU_DOUBLE_ENTER(cuStreamEndCapture);
    *graph = captured.release();
    count(&Live::graphs, 1);
    return kSuccess;
}

Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
    ENPU_DOUBLE_ENTER(cuGraphInstantiateWithFlags);
    *exec = new GraphExecObject{std::make_shared<std::vector<Operation>>(graph->operations)};
    count(&Live::graph_execs, 1);
    return kSuccess;
}

Result cuGraphExecUpdate(GraphExec exec, Graph graph, GraphUpdateInfo*) {
    ENPU_DOUBLE_ENTER(cuGraphExecUpdate);
    if (exec->operations->size() != graph->operations.size()) return kGraphExecUpdateFailure;
    exec->operations = std::make_shared<std::vector<Operation>>(graph->operations);
    return kSuccess;
}

Result cuGraphLaunch(GraphExec exec, Stream stream) {
    ENPU_DOUBLE_ENTER(cuGraphLaunch);
    return enqueue(stream, [operations = exec->operations] {
        for (const Operation& operation : *operations)
            if (const Result error = operation()) return error;
        return kSuccess;
    });
}

Result cuGraphDestroy(Graph graph) {
    delete graph;
    count(&Live::graphs, -1);
    return kSuccess;
}

Result cuGraphExecDestroy(GraphExec exec) {
    delete exec;
    count(&Live::graph_execs, -1);
    return kSuccess;
}

}  // namespace fake
}  // namespace enpu::hal::cuda
