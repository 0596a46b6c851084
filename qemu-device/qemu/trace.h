#include "trace/trace-hw_enpu.h"
