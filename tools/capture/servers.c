#include "tools/capture/servers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>

#include "tools/cli/holder.h"

bool capture_servers_add_sentinel(struct capture_servers *s, const char *text, struct rd_err *err)
{
    if (s->n_sentinels == CAPTURE_SENTINELS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "too many sentinels");
    s->sentinels[s->n_sentinels++] = text;
    return true;
}

static bool draw(void *ret, size_t size, struct rd_err *err)
{
    return getrandom(ret, size, 0) == (ssize_t)size ||
           rd_err_sys(err, errno, "cannot get random bytes");
}

static bool find_sentinels(const struct capture_servers *s, struct capture *c, struct rd_err *err)
{
    struct client_target like = {.opts = &s->peers.connect, .tls = c->target.tls};
    struct client_target secret = {.port = 0};
    struct peer_opts opts = {.pass_file = s->sentinel_pass_file};
    bool ok = true;
    if (s->sentinel_pass_file != NULL) {
        ok = peer_target_find(&secret, &opts, NULL, err);
        like.password = secret.password;
    }
    for (size_t i = 0; ok && i < s->n_sentinels; i++) {
        ok = client_target_of(&c->sentinels[i], &like, rd_slice_str(s->sentinels[i]),
                              CLIENT_SENTINEL_PORT, err);
        c->n_sentinels += ok;
        if (!ok)
            rd_err_doing(err, "the option --sentinel");
    }
    client_target_done(&secret);
    return ok;
}

bool capture_servers_find(struct capture_servers *s, struct capture *c, const char *url,
                          struct rd_err *err)
{
    return capture_init(c, draw, err) && peer_target_find(&c->target, &s->peers, url, err) &&
           find_sentinels(s, c, err);
}

void capture_servers_holder(struct rd_err *err)
{
    char path[PATH_MAX];
    if (err == NULL || err->code != RD_ERR_LOCKED)
        return;
    snprintf(path, sizeof path, "%s/capture.lock", err->origin);
    holder_name(err, path);
}
