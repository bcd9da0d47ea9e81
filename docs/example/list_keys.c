/* list_keys.c - prints the type and name of every key of a snapshot.
 *
 *     cc list_keys.c $(pkg-config --cflags --libs redoubt) -o list_keys
 */
#include <rdb/reader.h>
#include <stdio.h>

static bool list_keys(struct rd_src **src, struct rdb_reader **reader, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    if (!rd_src_decompress(src, err) || !rdb_reader_new(reader, *src, NULL, err))
        return false;
    while ((status = rdb_reader_next(*reader, &ev)) == RDB_EVENT) {
        char name[200]; /* a name may have any bytes; rd_err_quote() makes it safe to print */
        if (ev.kind != RDB_KEY)
            continue;
        rd_err_quote(name, sizeof name, ev.key.name);
        printf("%s %s\n", rdb_kind_name(ev.key.type->kind), name);
        if ((status = rdb_reader_skip_value(*reader)) != RDB_EVENT)
            break;
    }
    rd_err_adopt(err, rdb_reader_err(*reader));
    return status == RDB_END;
}

int main(int argc, char **argv)
{
    struct rd_src *src = NULL;
    struct rdb_reader *reader = NULL;
    struct rd_err err = {0};
    char line[1024];
    bool ok = rd_src_open_file(&src, argc > 1 ? argv[1] : "-", NULL, &err) &&
              list_keys(&src, &reader, &err);
    if (!ok)
        fprintf(stderr, "%s\n", rd_err_render(&err, line, sizeof line));
    rdb_reader_free(reader);
    rd_src_close(src);
    return ok ? 0 : 1;
}
