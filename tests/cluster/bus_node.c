/* bus_node.c - a node of a cluster without any data, for tests with real servers.
 *
 *     bus_node PORT BUSPORT FILE TIMEOUT [HOSTNAME]
 *
 * It reads commands from standard input and answers each with lines and a ".":
 *
 *     meet HOST PORT BUSPORT | forget ID | replicate ID | addslots FIRST LAST
 *     publish CHANNEL TEXT | spublish CHANNEL TEXT | failover [force|takeover]
 *     import SLOT ID | own SLOT | myid | nodes | state | reports ID | stats
 *
 * As a replica it says that it has all of its master's data. What it is told to do it prints as
 * lines that begin with "!".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cluster/cluster.h"
#include "tests/support/chance.h"

enum { SOCKETS_MAX = 64, TICK_MS = 100, LINE_LEN = 4096 };

struct bus_socket {
    int fd; /* 0: free */
    uint64_t conn;
    bool connecting;
    struct rd_buf output;
};

struct bus {
    struct cluster *c;
    const char *file;
    int listener;
    struct bus_socket sockets[SOCKETS_MAX];
    uint64_t random;
};

static void die(const char *what)
{
    perror(what);
    exit(3);
}

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static uint64_t random_number(void *ctx)
{
    struct bus *b = ctx;
    return chance_next(&b->random);
}

/* ---- sockets ---- */

static struct sockaddr_in address(const char *host, unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
}

static struct bus_socket *add(struct bus *b, int fd)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (b->sockets[i].fd == 0) {
            b->sockets[i] = (struct bus_socket){.fd = fd};
            fcntl(fd, F_SETFL, O_NONBLOCK);
            return &b->sockets[i];
        }
    }
    fprintf(stderr, "bus_node: too many connections\n");
    exit(3);
}

static void drop(struct bus_socket *s)
{
    close(s->fd);
    rd_buf_done(&s->output);
    *s = (struct bus_socket){.fd = 0};
}

static struct bus_socket *find(struct bus *b, uint64_t conn)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (b->sockets[i].fd != 0 && b->sockets[i].conn == conn)
            return &b->sockets[i];
    }
    return NULL;
}

static void open_conn(struct bus *b, const struct cluster_action *a)
{
    struct sockaddr_in to = address(a->host, a->port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        die("socket");
    struct bus_socket *s = add(b, fd);
    s->conn = a->conn;
    s->connecting = true;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) {
        drop(s);
        cluster_closed(b->c, a->conn);
    }
}

static void lose(struct bus *b, struct bus_socket *s)
{
    uint64_t conn = s->conn;
    drop(s);
    cluster_closed(b->c, conn);
}

static void flush(struct bus *b, struct bus_socket *s)
{
    while (s->output.len > 0) {
        ssize_t n = send(s->fd, s->output.ptr, s->output.len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            lose(b, s);
            return;
        }
        memmove(s->output.ptr, s->output.ptr + n, s->output.len - (size_t)n);
        s->output.len -= (size_t)n;
    }
}

/* ---- actions ---- */

static void save(struct bus *b)
{
    char temporary[LINE_LEN];
    struct rd_buf text = {0};
    snprintf(temporary, sizeof temporary, "%s.new", b->file);
    FILE *f = fopen(temporary, "w");
    bool ok = f != NULL && cluster_write(b->c, &text) &&
              fwrite(text.ptr, 1, text.len, f) == text.len && fflush(f) == 0 &&
              fsync(fileno(f)) == 0;
    if (f != NULL)
        fclose(f);
    ok = ok && rename(temporary, b->file) == 0;
    rd_buf_done(&text);
    cluster_saved(b->c, ok);
}

static void act_one(struct bus *b, const struct cluster_action *a)
{
    struct bus_socket *s = find(b, a->conn);
    if (a->kind == CLUSTER_CONNECT)
        open_conn(b, a);
    else if (a->kind == CLUSTER_CLOSE && s != NULL)
        drop(s);
    else if (a->kind == CLUSTER_SEND && s != NULL)
        rd_buf_add(&s->output, a->bytes.ptr, a->bytes.len);
    else if (a->kind == CLUSTER_SAVE)
        save(b);
    else if (a->kind == CLUSTER_REPLICATE)
        printf("!replicate %s %u\n", a->host, a->port);
    else if (a->kind == CLUSTER_PROMOTE)
        printf("!promote\n");
    else if (a->kind == CLUSTER_PAUSE)
        printf("!pause\n");
    else if (a->kind == CLUSTER_RESUME)
        printf("!resume\n");
    else if (a->kind == CLUSTER_PUBLISH)
        printf("!publish %.*s %.*s\n", (int)a->channel.len, (const char *)a->channel.ptr,
               (int)a->bytes.len, (const char *)a->bytes.ptr);
    else if (a->kind == CLUSTER_LOG)
        fprintf(stderr, "%lld %s\n", (long long)now_ms(), a->text);
}

static void act(struct bus *b)
{
    struct cluster_action a;
    while (cluster_next(b->c, &a))
        act_one(b, &a);
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (b->sockets[i].fd != 0 && !b->sockets[i].connecting)
            flush(b, &b->sockets[i]);
    }
}

/* ---- commands ---- */

static struct cluster_node *node_of(struct bus *b, const char *id)
{
    return cluster_find(b->c, rd_slice_str(id));
}

static void print_nodes(struct bus *b)
{
    struct rd_buf text = {0};
    if (cluster_write(b->c, &text))
        printf("%.*s", (int)text.len, (const char *)text.ptr);
    rd_buf_done(&text);
}

static void print_stats(struct bus *b)
{
    const struct cluster_stats *s = cluster_stats(b->c);
    for (unsigned i = 0; i < CLUSTER_N_MESSAGES; i++)
        printf("%s %llu %llu\n", cluster_message_word((enum cluster_message_type)i),
               (unsigned long long)s->sent[i], (unsigned long long)s->received[i]);
    printf("refused %llu\n", (unsigned long long)s->refused);
}

static int add_slots(struct bus *b, const char *first, const char *last)
{
    struct cluster_slots slots = {0};
    cluster_slots_add_range(&slots, (unsigned)atoi(first), (unsigned)atoi(last));
    return cluster_add_slots(b->c, &slots);
}

static int fail_over(struct bus *b, const char *how)
{
    return cluster_failover(b->c, strcmp(how, "force") == 0      ? CLUSTER_FAILOVER_FORCE
                                  : strcmp(how, "takeover") == 0 ? CLUSTER_FAILOVER_TAKEOVER
                                                                 : CLUSTER_FAILOVER);
}

/* 0, or what is wrong. */
static int about_node(struct bus *b, const char *what, const char *id)
{
    struct cluster_node *n = node_of(b, id);
    if (n == NULL)
        return CLUSTER_UNKNOWN;
    if (strcmp(what, "forget") == 0)
        return cluster_forget(b->c, n);
    if (strcmp(what, "replicate") == 0)
        return cluster_replicate(b->c, n);
    printf("%zu\n", cluster_failure_reports(b->c, n));
    return 0;
}

static int run(struct bus *b, char *const *w)
{
    unsigned slot = (unsigned)atoi(w[1]);
    if (strcmp(w[0], "meet") == 0)
        return cluster_meet(b->c, w[1], (unsigned)atoi(w[2]), (unsigned)atoi(w[3]));
    if (strcmp(w[0], "addslots") == 0)
        return add_slots(b, w[1], w[2]);
    if (strcmp(w[0], "failover") == 0)
        return fail_over(b, w[1]);
    if (strcmp(w[0], "import") == 0)
        return cluster_set_importing(b->c, slot, node_of(b, w[2]));
    if (strcmp(w[0], "own") == 0)
        return cluster_set_owner(b->c, slot, cluster_myself(b->c));
    if (strcmp(w[0], "myid") == 0)
        printf("%s\n", cluster_myself(b->c)->id.s);
    else if (strcmp(w[0], "nodes") == 0)
        print_nodes(b);
    else if (strcmp(w[0], "stats") == 0)
        print_stats(b);
    else if (strcmp(w[0], "state") == 0)
        printf("%s\n", cluster_is_ok(b->c) ? "ok" : "fail");
    else if (strcmp(w[0], "publish") == 0 || strcmp(w[0], "spublish") == 0)
        cluster_publish(b->c, rd_slice_str(w[1]), rd_slice_str(w[2]), w[0][0] == 's');
    else
        return about_node(b, w[0], w[1]);
    return 0;
}

static void on_line(struct bus *b, char *line)
{
    char empty[] = "", *words[4] = {empty, empty, empty, empty};
    size_t n = 0;
    for (char *word; n < 4 && (word = strsep(&line, " ")) != NULL;)
        words[n++] = word;
    int result = run(b, words);
    act(b);
    if (result != 0)
        printf("error %d\n", result);
    printf(".\n");
}

static void on_input(struct bus *b)
{
    static char input[LINE_LEN];
    static size_t len;
    ssize_t n = read(0, input + len, sizeof input - 1 - len);
    if (n <= 0)
        exit(0);
    len += (size_t)n;
    for (char *end; (end = memchr(input, '\n', len)) != NULL;) {
        *end = 0;
        on_line(b, input);
        len -= (size_t)(end + 1 - input);
        memmove(input, end + 1, len);
    }
}

/* ---- events ---- */

static const char *text_of(const struct sockaddr_in *a, char *ret, size_t size)
{
    return inet_ntop(AF_INET, &a->sin_addr, ret, (socklen_t)size);
}

static void own_of(int fd, char *ret, size_t size)
{
    struct sockaddr_in a = {0};
    socklen_t len = sizeof a;
    getsockname(fd, (struct sockaddr *)&a, &len);
    text_of(&a, ret, size);
}

static void on_accept(struct bus *b)
{
    struct sockaddr_in a = {0};
    socklen_t len = sizeof a;
    char own[INET_ADDRSTRLEN], peer[INET_ADDRSTRLEN];
    int fd = accept(b->listener, (struct sockaddr *)&a, &len);
    if (fd < 0)
        return;
    own_of(fd, own, sizeof own);
    add(b, fd)->conn = cluster_accepted(b->c, own, text_of(&a, peer, sizeof peer));
}

static void on_connected(struct bus *b, struct bus_socket *s)
{
    int error = 0;
    socklen_t len = sizeof error;
    char own[INET_ADDRSTRLEN];
    getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        lose(b, s);
        return;
    }
    s->connecting = false;
    own_of(s->fd, own, sizeof own);
    cluster_connected(b->c, s->conn, own);
}

static void on_readable(struct bus *b, struct bus_socket *s)
{
    uint8_t bytes[65536];
    ssize_t n = recv(s->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        lose(b, s);
    else
        cluster_received(b->c, s->conn, rd_slice(bytes, (size_t)n));
}

static void tell_replication(struct bus *b)
{
    const struct cluster_node *master = cluster_myself(b->c)->master;
    const struct cluster_replication state = {.offset = master != NULL ? master->offset : 0,
                                              .link_up = true};
    cluster_clock(b->c, now_ms());
    cluster_set_replication(b->c, &state);
}

static void on_events(struct bus *b, const struct pollfd *fds)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        struct bus_socket *s = &b->sockets[i];
        if (s->fd == 0 || fds[i + 2].fd != s->fd || fds[i + 2].revents == 0)
            continue;
        tell_replication(b);
        if (s->connecting)
            on_connected(b, s);
        else if ((fds[i + 2].revents & POLLIN) != 0)
            on_readable(b, s);
        else if ((fds[i + 2].revents & POLLOUT) != 0)
            flush(b, s);
        else
            lose(b, s);
        act(b);
    }
    if ((fds[1].revents & POLLIN) != 0)
        on_accept(b);
    if (fds[0].revents != 0)
        on_input(b);
}

static void wait_for_events(struct bus *b, int ms)
{
    struct pollfd fds[SOCKETS_MAX + 2] = {{.fd = 0, .events = POLLIN},
                                          {.fd = b->listener, .events = POLLIN}};
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        const struct bus_socket *s = &b->sockets[i];
        short out = s->connecting || s->output.len > 0 ? POLLOUT : 0;
        fds[i + 2] =
            (struct pollfd){.fd = s->fd != 0 ? s->fd : -1, .events = (short)(POLLIN | out)};
    }
    if (poll(fds, SOCKETS_MAX + 2, ms) > 0)
        on_events(b, fds);
}

/* ---- life ---- */

static void load(struct bus *b)
{
    static char text[1 << 20];
    struct rd_err err = {0};
    FILE *f = fopen(b->file, "r");
    if (f == NULL)
        return;
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    if (!cluster_load(b->c, rd_slice(text, n), now_ms(), &err)) {
        fprintf(stderr, "bus_node: %s: %s\n", b->file, err.text);
        exit(1);
    }
}

static void start(struct bus *b, char **argv)
{
    const struct cluster_opts opts = {.ctx = b, .random = random_number};
    struct sockaddr_in here = address("127.0.0.1", (unsigned)atoi(argv[2]));
    const int on = 1;
    b->random = (uint64_t)now_ms() * 1000 + (uint64_t)getpid();
    b->file = argv[3];
    b->c = cluster_new(&opts);
    struct cluster_settings *s = cluster_settings(b->c);
    s->port = (uint16_t)atoi(argv[1]);
    s->bus_port = (uint16_t)atoi(argv[2]);
    s->node_timeout_ms = atoi(argv[4]);
    if (argv[5] != NULL)
        snprintf(s->hostname, sizeof s->hostname, "%s", argv[5]);
    load(b);
    b->listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(b->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(b->listener, (struct sockaddr *)&here, sizeof here) != 0 ||
        listen(b->listener, SOCKETS_MAX) != 0)
        die("listen");
    cluster_start(b->c, now_ms());
    act(b);
}

int main(int argc, char **argv)
{
    static struct bus bus;
    int64_t tick_ms = now_ms();
    if (argc < 5)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start(&bus, argv);
    printf("ready\n");
    for (;;) {
        int64_t left_ms = tick_ms - now_ms();
        wait_for_events(&bus, left_ms > 0 ? (int)left_ms : 0);
        if (now_ms() < tick_ms)
            continue;
        tell_replication(&bus);
        cluster_tick(bus.c, now_ms());
        act(&bus);
        tick_ms = now_ms() + TICK_MS;
    }
}
