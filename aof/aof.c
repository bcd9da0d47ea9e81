#include "aof/aof.h"

enum aof_content aof_content_of(struct rd_slice first_bytes)
{
    if (first_bytes.len == 0)
        return AOF_EMPTY;
    if (first_bytes.len >= 5 && memcmp(first_bytes.ptr, "REDIS", 5) == 0)
        return AOF_SNAPSHOT;
    if (first_bytes.len >= 6 && memcmp(first_bytes.ptr, "VALKEY", 6) == 0)
        return AOF_SNAPSHOT;
    if (first_bytes.len >= 4 && memcmp(first_bytes.ptr, "VCS", 3) == 0 && first_bytes.ptr[3] < ' ')
        return AOF_SNAPSHOT; /* its envelope */
    return AOF_RESP;
}

const char *aof_content_name(enum aof_content content)
{
    switch (content) {
    case AOF_EMPTY:
        return "empty";
    case AOF_RESP:
        return "commands";
    case AOF_SNAPSHOT:
        return "snapshot";
    }
    return "unknown";
}
