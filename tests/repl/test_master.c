/* The master's side of replication: histories, peers and snapshots.
 */
#include "repl/master.h"

#include "base/resp.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_C "cccccccccccccccccccccccccccccccccccccccc"

enum { ARGS_MAX = 16, BACKLOG = 32 * 1024 };

static struct repl_replid id_of(const char *text)
{
    struct repl_replid id;
    cr_assert(repl_replid_get(rd_slice_str(text), &id));
    return id;
}

static struct repl_master *new_master(bool keeps)
{
    struct repl_master *m;
    struct repl_replid id = id_of(ID_A);
    cr_assert(repl_master_new(&m, &(struct repl_master_opts){.backlog_size = BACKLOG}, &id, NULL));
    cr_assert(!keeps || repl_master_keep(m));
    return m;
}

struct link {
    struct repl_peer peer;
    struct rd_buf out;
};

static void begin(struct link *l, struct repl_master *m)
{
    l->out = (struct rd_buf){0};
    repl_peer_init(&l->peer, m, &l->out);
}

static void end(struct link *l)
{
    repl_peer_done(&l->peer);
    rd_buf_done(&l->out);
}

/* Words divided by blanks; an argument with blanks in it has '_' in their place. */
static size_t split(char *text, struct rd_slice argv[ARGS_MAX])
{
    size_t n = 0;
    for (char *word = strtok(text, " "); word != NULL && n < ARGS_MAX; word = strtok(NULL, " ")) {
        for (char *p = word; *p != '\0'; p++)
            *p = *p == '_' ? ' ' : *p;
        argv[n++] = rd_slice_str(strcmp(word, "''") == 0 ? "" : word);
    }
    return n;
}

static enum repl_said replconf(struct link *l, const char *text, int64_t now_ms)
{
    char copy[256];
    struct rd_slice argv[ARGS_MAX];
    snprintf(copy, sizeof copy, "REPLCONF %s", text);
    size_t argc = split(copy, argv);
    return repl_peer_replconf(&l->peer, argc, argv, now_ms);
}

/* What was said since the last call. */
static const char *said(struct link *l)
{
    static char text[512];
    snprintf(text, sizeof text, "%.*s", (int)l->out.len, (const char *)l->out.ptr);
    rd_buf_reset(&l->out);
    return text;
}

/* Takes the whole stream of the peer. */
static const char *stream(struct link *l)
{
    static char text[4096];
    struct rd_slice s;
    size_t len = 0;
    while ((s = repl_peer_stream(&l->peer)).len > 0) {
        cr_assert_lt(len + s.len, sizeof text);
        memcpy(text + len, s.ptr, s.len);
        len += s.len;
        repl_peer_sent(&l->peer, s.len);
    }
    text[len] = '\0';
    return text;
}

static bool write_words(struct repl_master *m, unsigned db, const char *text)
{
    char copy[256];
    struct rd_slice argv[ARGS_MAX];
    snprintf(copy, sizeof copy, "%s", text);
    size_t argc = split(copy, argv);
    return repl_master_write(m, db, argc, argv);
}

static enum repl_verdict psync(struct link *l, const char *id, int64_t wanted)
{
    return repl_peer_psync(&l->peer, rd_slice_str(id), wanted, 0);
}

/* ---- REPLCONF ---- */

Test(master, replconf_takes_the_options_that_servers_know)
{
    struct repl_master *m = new_master(true);
    struct link l;
    begin(&l, m);
    cr_expect_eq(replconf(&l, "listening-port 6380 ip-address 10.0.0.1", 0), REPL_SAID_OPTION);
    cr_expect_str_eq(said(&l), "+OK\r\n");
    cr_expect(l.peer.port == 6380 && strcmp(l.peer.address, "10.0.0.1") == 0);
    replconf(&l, "CAPA eof capa psync2 capa dual-channel", 0);
    replconf(&l, "version 8.0.1", 0);
    replconf(&l, "rdb-only 1", 0);
    replconf(&l, "rdb-filter-only functions", 0);
    cr_expect_str_eq(said(&l), "+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
    cr_expect_eq(l.peer.capa, REPL_CAPA_EOF | REPL_CAPA_PSYNC2);
    cr_expect(l.peer.rdb_only && l.peer.filter == REPL_FILTER_FUNCTIONS);
    cr_expect_str_eq(l.peer.version, "8.0.1");
    replconf(&l, "rdb-filter-only \"FUNCTIONS\"", 0);
    cr_expect_eq(l.peer.filter, REPL_FILTER_FUNCTIONS);
    replconf(&l, "rdb-filter-only ''", 0);
    replconf(&l, "rdb-only 0", 0);
    cr_expect(!l.peer.rdb_only && l.peer.filter == REPL_FILTER_NOTHING);
    end(&l);
    repl_master_free(m);
}

Test(master, a_replica_announces_a_host_name_of_up_to_255_bytes)
{
    struct repl_master *m = new_master(true);
    char name[REPL_ADDRESS_MAX + 2];
    struct rd_slice argv[] = {rd_slice_str("REPLCONF"), rd_slice_str("ip-address"),
                              rd_slice(name, REPL_ADDRESS_MAX)};
    struct link l;
    memset(name, 'a', sizeof name);
    begin(&l, m);
    cr_expect_eq(repl_peer_replconf(&l.peer, 3, argv, 0), REPL_SAID_OPTION);
    cr_expect_str_eq(said(&l), "+OK\r\n");
    cr_expect_eq(strlen(l.peer.address), REPL_ADDRESS_MAX);
    argv[2].len++;
    cr_expect_eq(repl_peer_replconf(&l.peer, 3, argv, 0), REPL_SAID_WRONG);
    cr_expect_str_eq(said(&l), "-ERR REPLCONF ip-address provided by replica instance is too "
                               "long: 256 bytes\r\n");
    end(&l);
    repl_master_free(m);
}

Test(master, replconf_refuses_what_it_does_not_know)
{
    static const struct {
        const char *words, *answer;
    } wrong[] = {
        {"capa", "-ERR syntax error\r\n"},
        {"no-such-option\x01 1", "-ERR Unrecognized REPLCONF option: no-such-option \r\n"},
        {"listening-port x", "-ERR value is not an integer or out of range\r\n"},
        {"rdb-only 2", "-ERR value is out of range, value must between 0 and 1\r\n"},
        {"rdb-only x", "-ERR value is not an integer or out of range\r\n"},
        {"rdb-filter-only functions_keys", "-ERR Unsupported rdb-filter-only option: keys\r\n"},
        {"rdb-filter-only functions_'", "-ERR Missing rdb-filter-only values\r\n"},
        {"version 1_2", "-ERR Unrecognized version format\r\n"},
        {"ip-address \x01",
         "-ERR REPLCONF ip-address provided by replica instance is not printable: 1 bytes\r\n"},
    };
    struct repl_master *m = new_master(true);
    struct link l;
    begin(&l, m);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(replconf(&l, wrong[i].words, 0), REPL_SAID_WRONG, "%s", wrong[i].words);
        cr_expect_str_eq(said(&l), wrong[i].answer);
    }
    cr_expect_eq(replconf(&l, "getack *", 0), REPL_SAID_GETACK);
    cr_expect_eq(replconf(&l, "ack 5", 0), REPL_SAID_ACK);
    cr_expect_str_eq(said(&l), "");
    cr_expect_eq(l.peer.ack, 0, "it is not a replica");
    end(&l);
    repl_master_free(m);
}

/* ---- the stream ---- */

Test(master, without_a_backlog_writes_do_not_count)
{
    struct repl_master *m = new_master(false);
    cr_expect(write_words(m, 0, "SET k v"));
    cr_expect(repl_master_ping(m));
    cr_expect_eq(m->offset, 0);
    repl_master_free(m);
}

Test(master, the_stream_selects_a_database_when_it_changes_and_after_a_snapshot)
{
    struct repl_master *m = new_master(true);
    struct link l;
    begin(&l, m);
    cr_expect_eq(psync(&l, ID_A, 1), REPL_CONTINUES);
    cr_expect_str_eq(said(&l), "+CONTINUE\r\n");
    write_words(m, 0, "SET k v");
    write_words(m, 0, "DEL k");
    write_words(m, 12, "DEL k");
    cr_expect_str_eq(stream(&l),
                     "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
                     "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
                     "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    repl_master_begin_snapshot(m, &(struct repl_snapshot){.by_mark = false});
    write_words(m, 12, "DEL k");
    cr_expect_str_eq(stream(&l),
                     "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    repl_master_getack(m);
    repl_master_ping(m);
    cr_expect_str_eq(stream(&l), "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"
                                 "*1\r\n$4\r\nPING\r\n");
    end(&l);
    repl_master_free(m);
}

/* ---- PSYNC ---- */

Test(master, psync_continues_only_in_a_history_that_is_held)
{
    struct repl_master *m = new_master(true);
    struct repl_replid fresh = id_of(ID_B);
    write_words(m, 0, "SET k v");
    int64_t promoted = (int64_t)m->offset;
    repl_master_promote(m, &fresh);
    write_words(m, 0, "SET k v");
    const struct {
        const char *id;
        int64_t wanted;
        enum repl_verdict verdict;
    } cases[] = {
        {ID_B, 1, REPL_CONTINUES},
        {ID_B, (int64_t)m->offset + 1, REPL_CONTINUES},
        {ID_B, (int64_t)m->offset + 2, REPL_AHEAD},
        {ID_B, 0, REPL_NOT_HELD},
        {ID_B, -1, REPL_NOT_HELD},
        {ID_B, INT64_MIN, REPL_NOT_HELD},
        {ID_B, INT64_MAX, REPL_AHEAD},
        {ID_A, 1, REPL_CONTINUES},
        {ID_A, promoted + 1, REPL_CONTINUES},
        {ID_A, promoted + 2, REPL_PAST_SECOND},
        {ID_C, 1, REPL_OTHER_ID},
        {"", 1, REPL_OTHER_ID},
        {"?", -1, REPL_ASKS_FULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct link l;
        begin(&l, m);
        replconf(&l, "capa psync2", 0);
        said(&l);
        cr_expect_eq(psync(&l, cases[i].id, cases[i].wanted), cases[i].verdict, "case %zu", i);
        bool continues = cases[i].verdict == REPL_CONTINUES;
        cr_expect_str_eq(said(&l), continues ? "+CONTINUE " ID_B "\r\n" : "");
        cr_expect_eq(l.peer.state, continues ? REPL_PEER_ONLINE : REPL_PEER_WAITS);
        if (continues)
            cr_expect_eq(repl_peer_pending(&l.peer), m->offset - (uint64_t)cases[i].wanted + 1);
        end(&l);
    }
    cr_expect_eq(m->n_peers, 0);
    repl_master_free(m);
}

Test(master, psync_does_not_continue_past_what_the_backlog_dropped)
{
    struct repl_master *m = new_master(true);
    for (unsigned i = 0; i < 3000; i++)
        write_words(m, 0, "SET key value");
    struct link l;
    begin(&l, m);
    cr_expect_eq(psync(&l, ID_A, (int64_t)repl_backlog_start(m->backlog)), REPL_NOT_HELD);
    end(&l);
    begin(&l, m);
    cr_expect_eq(psync(&l, ID_A, (int64_t)repl_backlog_start(m->backlog) + 1), REPL_CONTINUES);
    end(&l);
    repl_master_free(m);
}

Test(master, part_of_the_data_needs_the_capability_eof)
{
    struct repl_master *m = new_master(true);
    struct link l;
    begin(&l, m);
    replconf(&l, "rdb-filter-only functions", 0);
    said(&l);
    cr_expect_eq(psync(&l, "?", -1), REPL_SYNC_REFUSED);
    cr_expect_str_eq(said(&l), "-ERR Filtered replica requires EOF capability\r\n");
    cr_expect_eq(repl_peer_sync(&l.peer, 0), REPL_SYNC_REFUSED);
    cr_expect_eq(m->n_peers, 0);
    end(&l);
    repl_master_free(m);
}

Test(master, histories_end_and_begin)
{
    struct repl_master *m = new_master(true);
    struct repl_replid b = id_of(ID_B), c = id_of(ID_C);
    write_words(m, 0, "SET k v");
    uint64_t offset = m->offset;
    repl_master_rename(m, &b);
    cr_expect(repl_replid_eq(&m->id, &b) && m->second == offset);
    cr_expect(repl_master_become(m, &c, 5000));
    cr_expect(m->offset == 5000 && !repl_replid_is_set(&m->id2));
    cr_expect_eq(repl_backlog_start(m->backlog), 5000);
    cr_expect(repl_master_pass(m, rd_slice_str("*1\r\n$4\r\nPING\r\n")));
    cr_expect_eq(m->offset, 5014);
    cr_expect(repl_master_restore(m, &b, 7000));
    cr_expect(repl_replid_eq(&m->id, &c) && repl_replid_eq(&m->id2, &b) && m->second == 7000);
    repl_master_drop(m, &b);
    cr_expect(m->backlog == NULL && !repl_replid_is_set(&m->id2) && repl_replid_eq(&m->id, &b));
    repl_master_free(m);
}

/* ---- snapshots ---- */

Test(master, one_snapshot_serves_all_that_wait_and_a_late_one_joins)
{
    struct repl_master *m = new_master(true);
    struct link l[3];
    struct repl_snapshot snapshot;
    const struct repl_snapshot_policy disk = {.diskless = false};
    for (unsigned i = 0; i < 3; i++)
        begin(&l[i], m);
    cr_expect_not(repl_master_due(m, &disk, 0, &snapshot));
    write_words(m, 0, "SET k v");
    psync(&l[0], "?", -1);
    repl_peer_sync(&l[1].peer, 0);
    cr_assert(repl_master_due(m, &disk, 0, &snapshot));
    cr_expect(!snapshot.by_mark && snapshot.n_peers == 2);
    cr_expect_eq(repl_master_begin_snapshot(m, &snapshot), 2);
    cr_expect_str_eq(said(&l[0]), "+FULLRESYNC " ID_A " 50\r\n");
    cr_expect_str_eq(said(&l[1]), "", "SYNC has no answer line");
    write_words(m, 0, "DEL k");
    psync(&l[2], ID_C, 1);
    cr_expect(repl_peer_join(&l[2].peer));
    cr_expect_str_eq(said(&l[2]), "+FULLRESYNC " ID_A " 50\r\n");
    repl_master_keep_alive(m);
    cr_expect_str_eq(said(&l[0]), "\n");
    repl_master_end_snapshot(m, false, true, 0);
    for (unsigned i = 0; i < 3; i++) {
        said(&l[i]);
        cr_expect_eq(l[i].peer.state, REPL_PEER_PAYLOAD);
        repl_peer_payload(&l[i].peer, 176);
        cr_expect_str_eq(said(&l[i]), "$176\r\n");
        cr_expect_str_eq(stream(&l[i]), "", "the snapshot comes first");
        repl_peer_payload_sent(&l[i].peer, 0);
        cr_expect_str_eq(stream(&l[i]),
                         "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    }
    for (unsigned i = 0; i < 3; i++)
        end(&l[i]);
    repl_master_free(m);
}

Test(master, a_snapshot_by_mark_waits_for_more_replicas_and_then_for_their_proof)
{
    struct repl_master *m = new_master(true);
    struct link l[3];
    struct repl_snapshot snapshot;
    const struct repl_snapshot_policy how = {.diskless = true, .delay_ms = 5000, .max_peers = 2};
    for (unsigned i = 0; i < 3; i++) {
        begin(&l[i], m);
        replconf(&l[i], "capa eof", 0);
        said(&l[i]);
    }
    psync(&l[0], "?", -1);
    cr_expect_not(repl_master_due(m, &how, 4999, &snapshot));
    cr_expect(repl_master_due(m, &how, 5000, &snapshot) && snapshot.by_mark);
    psync(&l[1], "?", -1);
    cr_assert(repl_master_due(m, &how, 1, &snapshot) && snapshot.n_peers == 2);
    repl_master_begin_snapshot(m, &snapshot);
    psync(&l[2], "?", -1);
    cr_expect_not(repl_peer_join(&l[2].peer), "its first bytes are sent");
    said(&l[0]);
    said(&l[2]);
    repl_master_keep_alive(m);
    cr_expect_str_eq(said(&l[0]), "", "it would be a part of the snapshot");
    cr_expect_str_eq(said(&l[2]), "\n");
    write_words(m, 0, "SET k v");
    repl_master_end_snapshot(m, true, true, 10);
    cr_expect_eq(l[0].peer.state, REPL_PEER_PROVES);
    cr_expect_str_eq(stream(&l[0]), "");
    cr_expect_eq(replconf(&l[0], "ack 0", 20), REPL_SAID_ONLINE);
    cr_expect_str_neq(stream(&l[0]), "");
    cr_expect_eq(replconf(&l[0], "ack 50 fack 40", 30), REPL_SAID_ACK);
    cr_expect(l[0].peer.ack == 50 && l[0].peer.durable == 40 && l[0].peer.ack_ms == 30);
    cr_expect_eq(replconf(&l[0], "ack 10", 31), REPL_SAID_ACK);
    cr_expect_eq(l[0].peer.ack, 50, "an offset never goes back");
    cr_expect(repl_master_acked(m, 50) == 1 && repl_master_acked(m, 51) == 0);
    cr_expect(repl_master_good(m, 100, 131) == 1 && repl_master_good(m, 100, 132) == 0);
    for (unsigned i = 0; i < 3; i++)
        end(&l[i]);
    repl_master_free(m);
}

Test(master, an_empty_line_is_a_sign_of_life)
{
    struct link a;
    struct repl_master *m = new_master(true);
    begin(&a, m);
    cr_expect_eq(repl_peer_psync(&a.peer, rd_slice_str(ID_A), 1, 1000), REPL_CONTINUES);
    cr_expect_eq(repl_master_good(m, 500, 2000), 0);
    repl_peer_heard(&a.peer, 1900);
    cr_expect_eq(repl_master_good(m, 500, 2000), 1);
    cr_expect_eq(repl_master_acked(m, 1), 0);
    end(&a);
    repl_master_free(m);
}

Test(master, a_replica_without_eof_gets_a_length_whatever_the_policy_is)
{
    struct repl_master *m = new_master(true);
    struct link plain, mark;
    struct repl_snapshot snapshot;
    const struct repl_snapshot_policy how = {.diskless = true, .delay_ms = 5000};
    begin(&plain, m);
    begin(&mark, m);
    replconf(&mark, "capa eof", 0);
    psync(&mark, "?", -1);
    psync(&plain, "?", -1);
    cr_assert(repl_master_due(m, &how, 0, &snapshot));
    cr_expect(!snapshot.by_mark && snapshot.n_peers == 2);
    end(&plain);
    end(&mark);
    repl_master_free(m);
}

Test(master, parts_of_the_data_are_snapshots_of_their_own)
{
    struct repl_master *m = new_master(true);
    struct link all, part;
    struct repl_snapshot snapshot;
    begin(&all, m);
    begin(&part, m);
    replconf(&part, "capa eof rdb-only 1 rdb-filter-only functions", 0);
    psync(&part, "?", -1);
    psync(&all, "?", -1);
    cr_assert(repl_master_due(m, &(struct repl_snapshot_policy){0}, 0, &snapshot));
    cr_expect(snapshot.by_mark && snapshot.n_peers == 1 &&
              snapshot.filter == REPL_FILTER_FUNCTIONS);
    repl_master_begin_snapshot(m, &snapshot);
    cr_expect_not(repl_peer_join(&all.peer));
    repl_master_end_snapshot(m, true, true, 0);
    cr_expect_eq(part.peer.state, REPL_PEER_ENDS);
    cr_assert(repl_master_due(m, &(struct repl_snapshot_policy){0}, 0, &snapshot));
    cr_expect(!snapshot.by_mark && snapshot.filter == REPL_FILTER_ALL);
    end(&all);
    end(&part);
    repl_master_free(m);
}

Test(master, a_failed_snapshot_is_an_error_except_inside_a_payload)
{
    struct repl_master *m = new_master(true);
    struct link l;
    for (unsigned by_mark = 0; by_mark < 2; by_mark++) {
        begin(&l, m);
        replconf(&l, "capa eof", 0);
        psync(&l, "?", -1);
        repl_master_begin_snapshot(m, &(struct repl_snapshot){.by_mark = by_mark != 0});
        said(&l);
        repl_master_end_snapshot(m, by_mark != 0, false, 0);
        cr_expect_eq(l.peer.state, REPL_PEER_FAILS);
        cr_expect_str_eq(said(&l),
                         by_mark ? "" : "-ERR BGSAVE failed, replication can't continue\r\n");
        end(&l);
    }
    repl_master_free(m);
}

Test(master, memory_is_counted_once_and_the_part_of_the_peers_apart)
{
    struct repl_master *m = new_master(true);
    struct link l[2];
    uint64_t of_peers;
    for (unsigned i = 0; i < 2; i++) {
        begin(&l[i], m);
        psync(&l[i], ID_A, 1);
    }
    for (unsigned i = 0; i < 10000; i++)
        write_words(m, 0, "SET key value");
    uint64_t all = repl_master_memory(m, &of_peers);
    cr_expect(all > m->offset && all < m->offset * 5 / 4);
    cr_expect_eq(of_peers, all - BACKLOG);
    for (unsigned i = 0; i < 2; i++)
        end(&l[i]);
    cr_expect_lt(repl_master_memory(m, &of_peers), 4 * BACKLOG);
    repl_master_set_size(m, 1 << 20);
    repl_master_memory(m, &of_peers);
    cr_expect_eq(of_peers, 0);
    repl_master_free(m);
}

/* ---- without memory ---- */

static bool whole_life(void)
{
    struct repl_master *m = NULL;
    struct repl_replid id = id_of(ID_A);
    struct link l;
    bool ok = repl_master_new(&m, &(struct repl_master_opts){.backlog_size = BACKLOG}, &id, NULL);
    if (!ok)
        return false;
    begin(&l, m);
    ok = repl_master_keep(m);
    for (unsigned i = 0; ok && i < 2000; i++) {
        uint64_t before = m->offset;
        ok = write_words(m, i % 2, "SET key value") && repl_master_ping(m);
        cr_expect(ok || m->offset - before == 0 || m->offset - before > 14);
    }
    ok = ok && psync(&l, ID_A, (int64_t)m->offset) == REPL_CONTINUES;
    ok = ok && repl_master_pass(m, rd_slice_str("*1\r\n$4\r\nPING\r\n"));
    ok = ok && repl_peer_stream(&l.peer).len == 15;
    end(&l);
    ok = ok && repl_master_become(m, &id, 7) && repl_master_restore(m, &id, 9);
    repl_master_free(m);
    return ok;
}

Test(master, without_memory_it_reports_that_and_loses_nothing)
{
    for (size_t n = 1;; n++) {
        alloc_fault_begin(n);
        bool ok = whole_life();
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !r.failed, "allocation %zu", n);
        if (!r.failed)
            break;
    }
}
