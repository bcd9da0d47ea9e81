#include "tests/sim/master.h"

#include <stdio.h>
#include <string.h>

#include "rdb/reader.h"

/* A snapshot: the last value of each key up to an offset. */
size_t master_put_state(const struct master *m, uint64_t offset, uint8_t ret[MASTER_STATE])
{
    int values[MASTER_KEYS];
    for (unsigned k = 0; k < MASTER_KEYS; k++)
        values[k] = -1;
    for (size_t i = 0; i < m->n && m->commands[i].end <= offset; i++)
        values[m->commands[i].key] = (int)m->commands[i].value;
    memcpy(ret, "REDIS0009\xfe", 11);
    size_t len = 11;
    for (unsigned k = 0; k < MASTER_KEYS; k++)
        if (values[k] >= 0)
            len += (size_t)snprintf((char *)ret + len, MASTER_STATE - len, "%c\x02k%u\x05%05d", 0,
                                    k, values[k]);
    static const uint8_t end[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 0};
    memcpy(ret + len, end, sizeof end);
    return len + sizeof end;
}

size_t master_put_command(const struct master_command *c, char ret[MASTER_COMMAND])
{
    return (size_t)snprintf(ret, MASTER_COMMAND, "*3\r\n$3\r\nSET\r\n$2\r\nk%u\r\n$5\r\n%05u\r\n",
                            c->key, c->value);
}

void master_write(struct master *m, unsigned key)
{
    char text[MASTER_COMMAND];
    struct master_command *c = &m->commands[m->n];
    *c = (struct master_command){.key = key, .value = (unsigned)m->n};
    m->offset += master_put_command(c, text);
    c->end = m->offset;
    m->n++;
}

/* The values in a snapshot that the engine saved, against those at an offset. */
bool master_has_state(const struct master *m, struct rd_slice rdb, uint64_t offset)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS);
    int want[MASTER_KEYS];
    unsigned key = MASTER_KEYS;
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rdb_event ev;
    enum rdb_status status;
    for (unsigned k = 0; k < MASTER_KEYS; k++)
        want[k] = -1;
    for (size_t i = 0; i < m->n && m->commands[i].end <= offset; i++)
        want[m->commands[i].key] = (int)m->commands[i].value;
    if (!rd_src_open_memory(&src, rdb, NULL, NULL) || !rdb_reader_new(&reader, src, &opts, NULL))
        return false;
    bool ok = true;
    while (ok && (status = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
        char tmp[RD_NUM_I64_MAX];
        uint64_t number = 0;
        if (ev.kind == RDB_KEY)
            key = ev.key.name.len == 2 ? ev.key.name.ptr[1] - (unsigned)'0' : MASTER_KEYS;
        if (ev.kind != RDB_ELEM)
            continue;
        struct rd_slice text = rdb_string_bytes(&ev.elem.str, tmp);
        for (size_t i = 0; i < text.len; i++)
            number = number * 10 + text.ptr[i] - '0';
        ok = key < MASTER_KEYS && text.len == MASTER_VALUE && want[key] == (int)number;
        if (ok)
            want[key] = -1;
    }
    for (unsigned k = 0; k < MASTER_KEYS; k++)
        ok = ok && want[k] == -1;
    rdb_reader_free(reader);
    rd_src_close(src);
    return ok && status == RDB_END;
}
