#include "stat/memory.h"

#include <criterion/criterion.h>

static const struct stat_layout *redis_70(void)
{
    return stat_layout_of(RDB_REDIS, 10);
}

Test(stat_memory, allocations_have_the_classes_of_jemalloc)
{
    static const uint64_t classes[] = {8,     16,    32,    48,    64,    80,   96,    112,   128,
                                       160,   192,   224,   256,   320,   384,  448,   512,   640,
                                       768,   896,   1024,  1280,  1536,  1792, 2048,  2560,  3072,
                                       3584,  4096,  5120,  6144,  7168,  8192, 10240, 12288, 14336,
                                       16384, 20480, 24576, 28672, 32768, 40960};
    size_t i = 0;
    for (uint64_t n = 1; n <= 40960; n++) {
        i += n > classes[i];
        cr_assert_eq(stat_layout_alloc(redis_70(), n), classes[i], "%llu", (unsigned long long)n);
    }
}

Test(stat_memory, the_jemalloc_of_the_source_trees_has_finer_classes)
{
    const struct stat_layout *l = stat_layout_of(RDB_REDIS, 11);
    static const uint64_t classes[] = {8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160};
    size_t i = 0;
    for (uint64_t n = 1; n <= 160; n++) {
        i += n > classes[i];
        cr_assert_eq(stat_layout_alloc(l, n), classes[i], "%llu", (unsigned long long)n);
    }
}

Test(stat_memory, a_list_of_one_small_node_is_the_node_alone_from_7_2_on)
{
    const struct stat_layout *l = stat_layout_of(RDB_REDIS, 11);
    enum rdb_type_id id = RDB_TYPE_LIST_QUICKLIST_2;
    cr_assert_eq(stat_memory_list(l, id, 8192), 16 + 8192);
    cr_assert_eq(stat_memory_list(l, id, 8193), 16 + 40 + 32 + 10240);
    cr_assert_eq(stat_memory_list(redis_70(), id, 100), 16 + 48 + 48 + 112);
}

Test(stat_memory, a_hash_whose_fields_expire_has_a_head_of_its_own)
{
    const struct stat_layout *l = stat_layout_of(RDB_REDIS, 12);
    cr_assert_eq(stat_memory_blob(l, RDB_TYPE_HASH_LISTPACK, 100), 16 + 112);
    cr_assert_eq(stat_memory_blob(l, RDB_TYPE_HASH_LISTPACK_EX, 100), 16 + 32 + 112);
}

static const struct stat_layout *named(const char *valkey, const char *version)
{
    struct rdb_release release = {.valkey = valkey[0] == 'v'};
    strcpy(release.version, version);
    int rdb = version[0] == '9' ? 80 : valkey[0] == 'v' ? 11 : version[2] == '6' ? 13 : 12;
    enum rdb_dialect dialect = version[0] == '9' ? RDB_VALKEY : RDB_REDIS;
    return stat_layout_of_release(stat_layout_of(dialect, rdb), &release);
}

Test(stat_layout, the_release_says_more_than_the_format)
{
    static const char *const cases[][3] = {
        {"valkey", "7.2.5", "Redis 7.2"},         {"valkey", "8.0.1", "Valkey 8.0"},
        {"valkey", "8.1.1", "Valkey 8.1"},        {"valkey", "9.1.2", "Valkey 9"},
        {"redis", "7.4.1", "Redis 7.4"},          {"redis", "7.3.6", "redict 7.3"},
        {"redis", "8.0.6", "Redis 8.0"},          {"redis", "8.2.1", "Redis 8.2 and later"},
        {"redis", "8.6.3", "Redis 8.2 and later"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_str_eq(named(cases[i][0], cases[i][1])->name, cases[i][2], "%s %s", cases[i][0],
                         cases[i][1]);
}

Test(stat_layout, servers_are_named_with_their_minor_version)
{
    cr_assert_str_eq(stat_layout_for(DATA_VALKEY_8, "valkey-8.0")->name, "Valkey 8.0");
    cr_assert_str_eq(stat_layout_for(DATA_VALKEY_8, "valkey-8.0.1")->name, "Valkey 8.0");
    cr_assert_str_eq(stat_layout_for(DATA_VALKEY_8, "valkey-8.1.1")->name, "Valkey 8.1");
    cr_assert_str_eq(stat_layout_for(DATA_VALKEY_8, "valkey-8")->name, "Valkey 8.1");
    cr_assert_str_eq(stat_layout_for(DATA_REDIS_8_0, "redis-8.0")->name, "Redis 8.0");
    cr_assert_str_eq(stat_layout_for(DATA_REDIS_8_0, "redis-8.4")->name, "Redis 8.2 and later");
    cr_assert_str_eq(stat_layout_for(DATA_REDIS_7_0, "redis-7.0.15")->name, "Redis 7.0");
}

static uint64_t string_of(const struct stat_layout *l, uint64_t name, uint64_t len, bool expires)
{
    const struct stat_string string = {.name_len = name, .len = len, .expires = expires};
    return stat_memory_string(l, &string);
}

/* By used_memory of the servers. */
Test(stat_memory, newer_servers_keep_name_expiry_and_short_value_in_the_object)
{
    const struct stat_layout *eight = named("valkey", "8.1.1"), *nine = named("valkey", "9.1.2");
    cr_assert_eq(string_of(eight, 11, 5, false), 48);
    cr_assert_eq(string_of(nine, 11, 5, false), 32); /* without the pointer */
    cr_assert_eq(string_of(nine, 11, 5, true), 48);
    cr_assert_eq(string_of(eight, 11, 100, false), 32 + 112);
    cr_assert_eq(string_of(nine, 11, 100, false), 128);
    cr_assert_eq(string_of(nine, 11, 100, true), 48 + 112);
    cr_assert_eq(string_of(named("redis", "8.6.3"), 11, 44, true), 48 + 48);
    cr_assert_eq(string_of(named("redis", "8.0.6"), 11, 5, false), 32 + 16 + 32);
}

Test(stat_memory, the_key_has_the_object_of_a_collection)
{
    const struct stat_layout *nine = named("valkey", "9.1.2");
    cr_assert_eq(stat_memory_key(nine, 8, false), 32);
    cr_assert_eq(stat_memory_key(nine, 8, true), 48);
    cr_assert_eq(stat_memory_blob(nine, RDB_TYPE_HASH_LISTPACK, 100), 112);
    cr_assert_eq(stat_memory_key(redis_70(), 8, true), 32 + 16);
    cr_assert_eq(stat_memory_key(named("valkey", "8.0.1"), 11, false), 32);
}

/* 13 elements in one bucket have one further bucket, 14 have two. */
Test(stat_memory, tables_of_buckets_have_further_ones)
{
    const struct stat_layout *nine = named("valkey", "9.1.2");
    cr_assert_eq(stat_memory_tables(nine, 1, 0), 64);
    cr_assert_eq(stat_memory_tables(nine, 0, 0), 0);
    uint64_t full = stat_memory_tables(nine, 7168, 0);
    cr_assert_geq(full, 1024 * 64 + 350 * 64); /* all places are taken on average */
    cr_assert_leq(full, 1024 * 64 + 500 * 64);
    cr_assert_eq(stat_memory_tables(nine, 7168, 7168), 2 * full);
    cr_assert_geq(stat_memory_tables(nine, 7169, 0), 2048 * 64);
}

Test(stat_memory, heads_of_strings_grow_with_them)
{
    static const uint64_t cases[][2] = {{0, 8},     {6, 8},     {7, 16},       {30, 32},
                                        {31, 48},   {32, 48},   {44, 48},      {45, 64},
                                        {255, 320}, {256, 320}, {65535, 81920}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(stat_memory_sds(redis_70(), cases[i][0]), cases[i][1], "%llu",
                     (unsigned long long)cases[i][0]);
}

Test(stat_memory, short_strings_and_numbers_need_no_second_allocation)
{
    const struct stat_string number = {.name_len = 3, .len = 5, .number = true};
    uint64_t key = 32 + 16 - 8; /* its entry and its name */
    cr_assert_eq(stat_memory_string(redis_70(), &number), key + 16);
    cr_assert_eq(string_of(redis_70(), 3, 44, false), key + 64);
    cr_assert_eq(string_of(redis_70(), 3, 45, false), key + 16 + 64);
}

/* A collection of n members (or fields with values) of `len` bytes of text. */
static uint64_t memory_of(enum rdb_type_id id, enum rdb_role role, uint64_t n, size_t len)
{
    struct stat_value value;
    uint8_t text[100];
    memset(text, 'x', sizeof text);
    stat_value_begin(&value, redis_70(), rdb_type_get(id));
    for (uint64_t i = 0; i < n; i++) {
        struct rdb_event ev = {.kind = RDB_ELEM};
        ev.elem.role = role == RDB_ROLE_FIELD && i % 2 == 1 ? RDB_ROLE_VALUE : role;
        ev.elem.expire_ms = RDB_NO_EXPIRE;
        ev.elem.str = (struct rdb_string){.ptr = text, .len = len, .total = len, .first = true};
        stat_value_elem(&value, &ev);
    }
    return stat_value_end(&value, 0);
}

/* What Redis 7.0.15 allocates for such keys, less the key and its entry. */
Test(stat_memory, tables_are_taken_for_what_the_server_allocates)
{
    cr_assert_eq(memory_of(RDB_TYPE_SET, RDB_ROLE_MEMBER, 1000, 10),
                 16 + 64 + 8 * 1024 + 1000 * (32 + 16));
    cr_assert_eq(memory_of(RDB_TYPE_HASH, RDB_ROLE_FIELD, 2048, 10),
                 16 + 64 + 8 * 1024 + 1024 * (32 + 2 * 16));
    /* Small enough to be packed when it is loaded: 2 bytes around each string, 7 around all. */
    cr_assert_eq(memory_of(RDB_TYPE_HASH, RDB_ROLE_FIELD, 20, 10), 16 + 256);
}

/* Nodes of one level take 48 bytes, of two 64, …: 53 in the mean. */
Test(stat_memory, a_skip_list_has_a_head_and_nodes_of_several_levels)
{
    uint64_t n = 1000, want = 16 + 16 + 32 + 640 + 64 + 8 * 1024 + n * (32 + 16 + 53);
    cr_assert_eq(memory_of(RDB_TYPE_ZSET_2, RDB_ROLE_MEMBER, n, 10), want);
}

Test(stat_memory, sets_of_integers_are_packed)
{
    struct stat_value value;
    stat_value_begin(&value, redis_70(), rdb_type_get(RDB_TYPE_SET));
    for (int64_t i = 0; i < 100; i++) {
        struct rdb_event ev = {.kind = RDB_ELEM};
        ev.elem.str = (struct rdb_string){.num = i * 1000, .is_int = true, .first = true};
        stat_value_elem(&value, &ev);
    }
    cr_assert_eq(stat_value_end(&value, 0), 16 + 448); /* 8 and 400 bytes */
}

Test(stat_memory, versions_have_their_layouts)
{
    cr_assert_str_eq(stat_layout_of(RDB_REDIS, 6)->name, "Redis 3.0 and before");
    cr_assert_str_eq(stat_layout_of(RDB_REDIS, 9)->name, "Redis 3.2 to 6.2");
    cr_assert_str_eq(stat_layout_of(RDB_REDIS, 10)->name, "Redis 7.0");
    cr_assert_str_eq(stat_layout_of(RDB_REDIS, 11)->name, "Redis 7.2");
    cr_assert_str_eq(stat_layout_of(RDB_REDIS, 14)->name, "Redis 8.2 and later");
    cr_assert_str_eq(stat_layout_of(RDB_VALKEY, 80)->name, "Valkey 9");
}

static struct rdb_stream_id id(uint64_t ms, uint64_t seq)
{
    return (struct rdb_stream_id){ms, seq};
}

static struct stat_rax empty_rax(void)
{
    return (struct stat_rax){.layout = redis_70()};
}

/* A run of 15 bytes has four bytes before it, is padded and has an address; an end has 16. */
Test(stat_rax, one_id_is_a_run_and_an_end)
{
    struct stat_rax rax = empty_rax();
    cr_assert_eq(stat_rax_memory(&rax), 8);
    stat_rax_add(&rax, id(1, 1));
    cr_assert_eq(stat_rax_memory(&rax), 32 + 16);
}

Test(stat_rax, ids_that_differ_in_their_last_byte_share_all_but_their_ends)
{
    struct stat_rax rax = empty_rax();
    for (uint64_t i = 0; i < 10; i++)
        stat_rax_add(&rax, id(1, i));
    cr_assert_eq(stat_rax_memory(&rax), 32 + 96 + 10 * 16); /* the run, the fork, ten ends */
}

/* The root's run of 7 bytes, the fork in byte 7, and for each a run and an end. */
Test(stat_rax, ids_that_part_early_have_a_run_each)
{
    struct stat_rax rax = empty_rax();
    for (uint64_t i = 0; i < 5; i++)
        stat_rax_add(&rax, id(i, 0));
    cr_assert_eq(stat_rax_memory(&rax), 32 + 64 + 5 * (32 + 16));
}

/* Forks in byte 0 and, on its second branch, in byte 15. */
Test(stat_rax, forks_below_forks_are_counted_once)
{
    struct stat_rax rax = empty_rax();
    stat_rax_add(&rax, id(0, 0));
    stat_rax_add(&rax, id(UINT64_C(1) << 56, 0));
    stat_rax_add(&rax, id(UINT64_C(1) << 56, 1));
    stat_rax_add(&rax, id(UINT64_C(1) << 56, 2));
    cr_assert_eq(stat_rax_memory(&rax), 32 + 32 + (32 + 32) + 16 + 3 * 16);
}
