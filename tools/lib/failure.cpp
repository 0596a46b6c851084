// SPDX-License-Identifier: MIT
#include "failure.h"

#include <cerrno>

namespace enpu::tools {

Exit exit_of(int code) {
    switch (-code) {
        case 0:
            return kOk;
        case ENODEV:
        case ENOENT:
        case ENXIO:
            return kNoDevice;
        case EACCES:
        case EPERM:
            return kNoPermission;
        case EIO:
        case ETIME:
        case ETIMEDOUT:
            return kDeviceLost;
        case EOPNOTSUPP:
        case EPROTO:
            return kUnsupported;
        case EINVAL:
            return kUsage;
        default:
            return kCheckFailed;
    }
}

}  // namespace enpu::tools
