/* What masters and replicas do: they answer, follow a master, and forward messages. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sentinels.h"

enum { CRON_MS = 100, WORDS_MAX = 8, WRITES = 50 };

static void info(const struct sim_run *r, int host, char *out, size_t size)
{
    const struct sim_server *s = &r->hosts[host].server;
    char ip[SENTINEL_IP_MAX + 1];
    size_t len = (size_t)snprintf(out, size, "$# Server\r\nrun_id:%038d%02u\r\nrole:%s\r\n", host,
                                  s->starts % 100, s->is_master ? "master" : "slave");
    if (!s->is_master) {
        sim_ip_of(r, s->master, ip);
        len += (size_t)snprintf(out + len, size - len,
                                "master_host:%s\r\nmaster_port:6379\r\nmaster_link_status:%s\r\n"
                                "slave_repl_offset:%llu\r\nslave_priority:%d\r\n",
                                ip, s->link_up ? "up" : "down", (unsigned long long)s->offset,
                                s->priority);
        if (!s->link_up)
            len +=
                (size_t)snprintf(out + len, size - len, "master_link_down_since_seconds:%lld\r\n",
                                 (long long)(r->now_ms - s->link_down_ms) / 1000);
    }
    for (int i = 0, n = 0; i < r->n_servers; i++) {
        const struct sim_server *other = &r->hosts[i].server;
        if (i == host || other->is_master || other->master != host || !other->link_up)
            continue;
        sim_ip_of(r, i, ip);
        len += (size_t)snprintf(out + len, size - len,
                                "slave%d:ip=%s,port=6379,state=online,offset=%llu,lag=0\r\n", n++,
                                ip, (unsigned long long)other->offset);
    }
}

static void publish(struct sim_run *r, int host, const char *message)
{
    char text[SIM_TEXT_MAX];
    snprintf(text, sizeof text, "!%s", message);
    for (size_t i = 0; i < r->n_conns; i++) {
        if (r->conns[i].number != 0 && r->conns[i].to == host && r->conns[i].subscribed)
            sim_back(r, i, text);
    }
}

static void follow(struct sim_run *r, int host, int master)
{
    struct sim_server *s = &r->hosts[host].server;
    if (s->is_master ? master < 0 : s->master == master)
        return;
    s->is_master = master < 0;
    s->master = master;
    s->link_up = false;
    s->link_down_ms = r->now_ms;
}

void sim_server_command(struct sim_run *r, size_t conn, const char *text)
{
    char copy[SIM_TEXT_MAX], reply[SIM_TEXT_MAX], *words[WORDS_MAX] = {NULL}, *rest = copy;
    int host = r->conns[conn].to;
    snprintf(copy, sizeof copy, "%s", text);
    for (size_t n = 0; n < WORDS_MAX && rest != NULL; n++)
        words[n] = strsep(&rest, "\n");
    if (strcmp(words[0], "PING") == 0) {
        sim_back(r, conn, "+PONG");
    } else if (strcmp(words[0], "INFO") == 0) {
        info(r, host, reply, sizeof reply);
        sim_back(r, conn, reply);
    } else if (strcmp(words[0], "PUBLISH") == 0) {
        publish(r, host, words[2]);
        sim_back(r, conn, ":1");
    } else if (strcmp(words[0], "SUBSCRIBE") == 0) {
        r->conns[conn].subscribed = true;
        sim_back(r, conn, "*");
    } else if (strcmp(words[0], "SLAVEOF") == 0) {
        follow(r, host, strcmp(words[1], "NO") == 0 ? -1 : sim_host_of(r, words[1]));
        sim_back(r, conn, "+QUEUED");
    } else if (strcmp(words[0], "CLIENT") == 0 && strcmp(words[1], "KILL") == 0) {
        if (strcmp(words[3], "pubsub") == 0)
            sim_cut(r, host, conn);
        sim_back(r, conn, "+QUEUED");
    } else {
        sim_back(r, conn, "+OK");
    }
}

/* A chain of replicas gets its data from the server at its end. */
static void replicate(struct sim_run *r, int host)
{
    struct sim_server *s = &r->hosts[host].server;
    if (s->is_master) {
        s->offset += sim_chance(r, WRITES);
        return;
    }
    bool up = s->master != host && sim_reach(r, host, s->master) && sim_chance(r, 40) != 0;
    if (up)
        s->offset = r->hosts[s->master].server.offset;
    if (s->link_up && !up)
        s->link_down_ms = r->now_ms;
    s->link_up = up;
}

void sim_servers_cron(struct sim_run *r)
{
    for (int i = 0; i < r->n_servers; i++) {
        if (r->hosts[i].alive && sim_chance(r, 4) != 0)
            replicate(r, i);
    }
    sim_at(r, r->now_ms + CRON_MS, SIM_CRON, -1, SIZE_MAX, NULL);
}

void sim_server_start(struct sim_run *r, int host)
{
    struct sim_server *s = &r->hosts[host].server;
    r->hosts[host].alive = true;
    s->starts++;
    s->link_up = false;
    s->link_down_ms = r->now_ms;
}
