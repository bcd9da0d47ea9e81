/* modules.h - commands of common modules: where their keys are, for logs and streams that contain
 * them. See engine/commands/table.h for the format.
 *
 * The arity is a lower bound. Versions of the modules are not known here; servers have had modules
 * since 4.0. Commands about indexes (FT.CREATE) are not here: they change no key, but what they
 * change is not known.
 */
#ifndef ENGINE_COMMANDS_MODULES_H
#define ENGINE_COMMANDS_MODULES_H

/* clang-format off */
#define ENGINE_TABLE_MODULES(CMD, BOX, SUB, END)                                                   \
    CMD(json_arrappend, "json.arrappend", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",    \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_arrinsert, "json.arrinsert", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",    \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_arrpop, "json.arrpop", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",          \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_arrtrim, "json.arrtrim", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",        \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_clear, "json.clear", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",            \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_del, "json.del", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_forget, "json.forget", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",          \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_merge, "json.merge", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",            \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_mset, "json.mset", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",              \
        "Changes a document of a JSON module", NULL,                                               \
        KEYS(1, -1, 3, SPEC(INDEX(1), RANGE(-1, 3, 0), RW | UPDATE)))                              \
    CMD(json_numincrby, "json.numincrby", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",    \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_nummultby, "json.nummultby", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",    \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_numpowby, "json.numpowby", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",      \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_set, "json.set", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_strappend, "json.strappend", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",    \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(json_toggle, "json.toggle", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",          \
        "Changes a document of a JSON module", NULL,                                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(bf_add, "bf.add", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                    \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(bf_insert, "bf.insert", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",              \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(bf_load, "bf.load", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                  \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(bf_loadchunk, "bf.loadchunk", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",        \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(bf_madd, "bf.madd", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                  \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(bf_reserve, "bf.reserve", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",            \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cf_add, "cf.add", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                    \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cf_addnx, "cf.addnx", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cf_compact, "cf.compact", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",            \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cf_del, "cf.del", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                    \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cf_insert, "cf.insert", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",              \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cf_insertnx, "cf.insertnx", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",          \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cf_loadchunk, "cf.loadchunk", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",        \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cf_reserve, "cf.reserve", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",            \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cms_incrby, "cms.incrby", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",            \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cms_initbydim, "cms.initbydim", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",      \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cms_initbyprob, "cms.initbyprob", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",    \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(cms_merge, "cms.merge", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",              \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(tdigest_add, "tdigest.add", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",          \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(tdigest_create, "tdigest.create", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",    \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(tdigest_merge, "tdigest.merge", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",      \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(tdigest_reset, "tdigest.reset", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",      \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(topk_add, "topk.add", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(topk_incrby, "topk.incrby", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",          \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(topk_reserve, "topk.reserve", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",        \
        "Changes a value of a module for probabilistic types", NULL,                               \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(ts_add, "ts.add", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                    \
        "Changes a series of a module for time series", NULL,                                      \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(ts_alter, "ts.alter", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                \
        "Changes a series of a module for time series", NULL,                                      \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(ts_create, "ts.create", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",              \
        "Changes a series of a module for time series", NULL,                                      \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(ts_createrule, "ts.createrule", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",      \
        "Changes a series of a module for time series", NULL,                                      \
        KEYS(1, 2, 1, SPEC(INDEX(1), RANGE(1, 1, 0), RW | UPDATE)))                                \
    CMD(ts_decrby, "ts.decrby", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",              \
        "Changes a series of a module for time series", NULL,                                      \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(ts_del, "ts.del", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                    \
        "Changes a series of a module for time series", NULL,                                      \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(ts_deleterule, "ts.deleterule", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",      \
        "Changes a series of a module for time series", NULL,                                      \
        KEYS(1, 2, 1, SPEC(INDEX(1), RANGE(1, 1, 0), RW | UPDATE)))                                \
    CMD(ts_incrby, "ts.incrby", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",              \
        "Changes a series of a module for time series", NULL,                                      \
        KEY(1, RW | ACCESS | UPDATE))                                                              \
    CMD(ts_madd, "ts.madd", MODULE, LATER, -2, WRITE | LATER_VERSION, 0, "4.0.0",                  \
        "Changes a series of a module for time series", NULL,                                      \
        KEYS(1, -1, 3, SPEC(INDEX(1), RANGE(-1, 3, 0), RW | UPDATE)))
/* clang-format on */

#endif
