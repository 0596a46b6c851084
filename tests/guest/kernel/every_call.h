// SPDX-License-Identifier: MIT
// One right call of each ioctl, in an order in which each has what it needs, for tests that make
// something fail inside of them.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace enpu::test {

struct Call {
    const char* name;
    // 0 or -errno.
    std::function<int()> call;
    // Undoes a call that succeeded, before it is made again. May be empty.
    std::function<void()> undo;
    // At least so many of the module's own hooks (fail_nth) lie in it.
    int hooks;
    // What a call that failed may leave, as it belongs to something else: names of live_objects(),
    // with spaces between.
    std::string kept;
};

// Opens a device and hands the calls over, one by one. The visitor leaves each made once, with
// success: the next ones need what it made. Closes everything.
void every_call(const std::function<void(const Call&)>& visit);

// The first name whose number is not as it was, or an empty text.
std::string difference(const std::map<std::string, long>& now,
                       const std::map<std::string, long>& before,
                       const std::string& but = std::string());

}  // namespace enpu::test
