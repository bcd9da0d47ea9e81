/* The addresses of host names. A name server that does not answer must not stop the Sentinel: it
 * works with the last answer, and asks again in a thread. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "server/loop/log.h"
#include "server/loop/lookup.h"
#include "server/surface/watch/watch_impl.h"

enum { NAMES_MAX = 1024, ASK_AGAIN_MS = 500 };

struct watch_name {
    struct watch_name *next;
    struct watch *watch;
    char name[SENTINEL_HOST_MAX + 1];
    char ip[SENTINEL_IP_MAX + 1]; /* "": it has none, or that is not known yet */
    struct lookup *lookup;        /* NULL: none is under way */
    int64_t asked_ms;
};

static void on_found(void *ctx, struct addrinfo *all, int error)
{
    struct watch_name *n = ctx;
    n->lookup = NULL;
    n->ip[0] = 0;
    if (error != 0)
        return;
    if (getnameinfo(all->ai_addr, all->ai_addrlen, n->ip, sizeof n->ip, NULL, 0, NI_NUMERICHOST) !=
        0)
        n->ip[0] = 0;
    freeaddrinfo(all);
}

static void drop(struct watch_name *n)
{
    lookup_cancel(n->lookup);
    rd_free(n);
}

/* The name that was asked for last is the first; too many: the last one is forgotten. */
static struct watch_name *take(struct watch *w, const char *name)
{
    struct watch_name **at = &w->names, *n;
    for (size_t count = 1; *at != NULL && strcasecmp((*at)->name, name) != 0; count++) {
        if (count == NAMES_MAX)
            break;
        at = &(*at)->next;
    }
    n = *at;
    if (n != NULL)
        *at = n->next;
    if (n != NULL && strcasecmp(n->name, name) != 0) {
        drop(n);
        n = NULL;
    }
    if (n == NULL) {
        n = rd_calloc(1, sizeof *n);
        if (n == NULL)
            log_panic("out of memory");
        n->watch = w;
        snprintf(n->name, sizeof n->name, "%s", name);
    }
    n->next = w->names;
    w->names = n;
    return n;
}

static void ask(struct watch_name *n)
{
    struct loop *loop = &n->watch->srv->loop;
    int64_t now_ms = loop_mono_ms(loop);
    if (n->lookup != NULL || (n->asked_ms != 0 && now_ms - n->asked_ms < ASK_AGAIN_MS))
        return;
    n->asked_ms = now_ms;
    n->lookup = lookup_start(loop, n->name, "0", on_found, n);
}

static void ask_and_wait(struct watch_name *n)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    lookup_cancel(n->lookup);
    int error = getaddrinfo(n->name, NULL, &hints, &all);
    on_found(n, all, error);
}

bool watch_names_find(struct watch *w, const char *name, char ret_ip[SENTINEL_IP_MAX + 1])
{
    struct watch_name *n = take(w, name);
    if (w->names_now)
        ask_and_wait(n);
    else
        ask(n);
    snprintf(ret_ip, SENTINEL_IP_MAX + 1, "%s", n->ip);
    return n->ip[0] != 0;
}

void watch_names_drop_all(struct watch *w)
{
    while (w->names != NULL) {
        struct watch_name *n = w->names;
        w->names = n->next;
        drop(n);
    }
}
