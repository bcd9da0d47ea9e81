// count_keys.cpp - counts the keys of a snapshot by type, and the bytes that their values take.
//
//     c++ count_keys.cpp $(pkg-config --cflags --libs redoubt) -o count_keys
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <rdb/reader.h>

using Source = std::unique_ptr<rd_src, void (*)(rd_src *)>;
using Reader = std::unique_ptr<rdb_reader, void (*)(rdb_reader *)>;

struct Total {
    unsigned long long keys = 0, bytes = 0;
};

[[noreturn]] static void fail(const rd_err &err)
{
    char line[1024];
    throw std::runtime_error(rd_err_render(&err, line, sizeof line));
}

static Source open_source(const char *path)
{
    rd_err err{};
    rd_src *src = nullptr;
    if (!rd_src_open_file(&src, path, nullptr, &err))
        fail(err);
    Source closed_on_failure(src, rd_src_close);
    if (!rd_src_decompress(&src, &err)) // a filter owns the source that it reads
        fail(err);
    (void)closed_on_failure.release();
    return Source(src, rd_src_close);
}

static std::map<std::string, Total> count(rd_src *src)
{
    rd_err err{};
    rdb_reader *reader = nullptr;
    rdb_reader_opts opts = RDB_READER_OPTS();
    opts.detail = RDB_DETAIL_FRAMES; // VALUE_END has the size; elements are not needed
    if (!rdb_reader_new(&reader, src, &opts, &err))
        fail(err);
    Reader owner(reader, rdb_reader_free);

    std::map<std::string, Total> totals;
    const rdb_type *type = nullptr;
    rdb_event ev;
    rdb_status status;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_KEY) {
            type = ev.key.type;
        } else if (ev.kind == RDB_VALUE_END && type != nullptr) {
            Total &total = totals[rdb_kind_name(type->kind)];
            total.keys++;
            total.bytes += ev.value_end.bytes;
            type = nullptr; // the data of modules ends with VALUE_END, too
        }
    }
    if (status != RDB_END)
        fail(*rdb_reader_err(reader));
    return totals;
}

int main(int argc, char **argv)
{
    try {
        Source source = open_source(argc > 1 ? argv[1] : "-");
        for (const auto &entry : count(source.get()))
            std::printf("%s %llu %llu\n", entry.first.c_str(), entry.second.keys,
                        entry.second.bytes);
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
    return 0;
}
