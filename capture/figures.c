#include "capture/figures.h"

#include <sys/ioctl.h>

static uint64_t unread(const struct capture_link *link)
{
    int n = 0;
    if (link->peer == NULL || client_peer_fd(link->peer) < 0 ||
        ioctl(client_peer_fd(link->peer), FIONREAD, &n) != 0 || n < 0)
        return 0;
    return (uint64_t)n;
}

struct capture_figures capture_figures(const struct capture_link *link, uint64_t now_ms)
{
    const struct repl_capture_writer *w = link->store.writer;
    struct capture_figures f = {.up = link->stream_ms != 0};
    if (w == NULL)
        return f;
    f.received = repl_capture_writer_received(w);
    f.written = repl_capture_writer_written(w);
    f.synced = repl_capture_writer_synced(w);
    f.acked = capture_store_acked(&link->store);
    f.lag_bytes = f.received - f.acked + (f.up ? unread(link) : 0);
    if (link->gone)
        return f;
    if (!f.up && link->heard_ms != 0)
        f.lag_ms = now_ms - link->heard_ms;
    else if (f.up && f.received > f.acked)
        f.lag_ms = now_ms - link->mark_ms;
    return f;
}

uint64_t capture_disk_bytes(const struct capture_link *link)
{
    return link->store.writer != NULL ? repl_capture_writer_size(link->store.writer) : 0;
}
