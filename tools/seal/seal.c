/* seal.c - `redoubt seal` and `redoubt unseal`: a stream, encrypted and authenticated. */
#include "base/buf.h"
#include "base/digest.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <stdio.h>
#include <unistd.h>

struct run {
    struct cli *cli;
    struct vault vault;
    const char *out, *make_key, *name;
    bool force, show_id;
    struct backup_target target; /* the keys of the command line */
    struct backup_keys keys;
};

/* ---- a new key ---- */

static bool make_key(struct run *run, struct rd_err *err)
{
    uint8_t bytes[RD_SEAL_KEY];
    char text[2 * RD_SEAL_KEY + 2];
    const struct rd_sink_opts opts = RD_SINK_OPTS(.mode = 0600, .origin = run->make_key);
    struct rd_sink *sink;
    if (!backup_random(bytes, sizeof bytes, err) ||
        !rd_sink_open_file(&sink, run->make_key, &opts, err))
        return false;
    rd_digest_hex(text, rd_slice(bytes, sizeof bytes));
    text[2 * RD_SEAL_KEY] = '\n';
    rd_sink_write(sink, text, 2 * RD_SEAL_KEY + 1);
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(text, sizeof text);
    return rd_sink_close(sink, err);
}

/* ---- the stream ---- */

static bool open_sealing(struct run *run, struct rd_sink **sink, struct rd_err *err)
{
    struct rd_seal_opts opts = {.name = rd_slice_str(run->name != NULL ? run->name : "")};
    if (!backup_keys_seal(&run->keys, &opts.key, err))
        return false;
    bool ok = backup_random(opts.random, sizeof opts.random, err) &&
              rd_seal_open_sink(sink, *sink, &opts, err);
    explicit_bzero(opts.random, sizeof opts.random);
    return ok;
}

static bool pass(struct run *run, const char *in, bool seal, struct rd_err *err)
{
    struct rd_src *src;
    struct rd_sink *sink;
    const struct rd_slice name = rd_slice_str(run->name != NULL ? run->name : "");
    if (!rd_src_open_file(&src, in, NULL, err))
        return false;
    if (!seal && !rd_seal_open_src(&src, src, &run->keys.ring, name, err)) {
        rd_src_close(src);
        return false;
    }
    bool ok = cli_open_out_as_is(run->cli, run->out, run->force, seal, &sink, err);
    if (ok) {
        cli_progress_begin(run->cli, in, rd_src_size(src));
        ok = (!seal || open_sealing(run, &sink, err)) && cli_copy(run->cli, src, sink, err);
        cli_progress_end(run->cli);
        if (ok)
            ok = rd_sink_close(sink, err);
        else
            rd_sink_abort(sink);
    }
    rd_src_close(src);
    return ok;
}

/* ---- the tools ---- */

static void show_ids(const struct run *run)
{
    struct json_write *json = &run->cli->out;
    char id[RD_SEAL_ID_HEX];
    if (run->cli->json) {
        json_key(json, "key_ids");
        json_array(json);
    }
    for (size_t i = 0; i < run->keys.n_keys; i++) {
        const char *text = rd_seal_key_id(&run->keys.keys[i], id);
        if (run->cli->json)
            json_str(json, text);
        else
            printf("%s\n", text);
    }
    if (run->cli->json)
        json_end(json);
}

static bool work(struct run *run, bool seal, struct rd_err *err)
{
    if (run->make_key != NULL)
        return make_key(run, err);
    run->target.conf = run->vault.config.flags;
    if (!backup_keys_open(&run->keys, &run->target, err))
        return false;
    if (run->keys.n_keys == 0 && run->keys.passphrase.len == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no key is given");
    if (!run->show_id)
        return pass(run, run->cli->n_args > 0 ? run->cli->args[0] : "-", seal, err);
    if (run->keys.n_keys == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a passphrase has no id");
    show_ids(run);
    return true;
}

static int run_tool(struct cli *cli, int argc, char **argv, bool seal)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    struct rd_err err = {0};
    vault_init(&run.vault, cli);
    /* The settings for seal keys, as options: these tools read no configuration file. */
    size_t n = vault_options(&run.vault, opts, BACKUP_FOR_KEYS) - 1;
    memmove(opts, opts + 1, n * sizeof *opts);
    opts[n++] = (struct cli_opt){.name = "output",
                                 .letter = 'o',
                                 .kind = CLI_STRING,
                                 .arg = "FILE",
                                 .string = &run.out,
                                 .help = "the output; default: standard output"};
    opts[n++] = (struct cli_opt){.name = "name",
                                 .kind = CLI_STRING,
                                 .arg = "NAME",
                                 .string = &run.name,
                                 .help = "bound into the seal; of a set: TARGET/sets/ID/OBJECT"};
    opts[n++] = (struct cli_opt){
        .name = "force", .kind = CLI_FLAG, .flag = &run.force, .help = "replace an existing file"};
    opts[n] = (struct cli_opt){0};
    if (seal) {
        opts[n++] = (struct cli_opt){.name = "make-key",
                                     .kind = CLI_STRING,
                                     .arg = "FILE",
                                     .string = &run.make_key,
                                     .help = "write a new key into FILE; do nothing else"};
        opts[n++] = (struct cli_opt){.name = "key-id",
                                     .kind = CLI_FLAG,
                                     .flag = &run.show_id,
                                     .help = "print the ids of the keys; do nothing else"};
        opts[n] = (struct cli_opt){0};
    }
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [FILE]",
        .about =
            seal ? "Encrypts and authenticates a file or standard input (AES-256-GCM)."
                 : "Decrypts and verifies the output of redoubt seal. Data that does not verify\n"
                   "is never written.",
        .opts = opts,
        .max_args = 1,
        .example = seal ? "redoubt seal --key-file key dump.rdb -o dump.rdb.sealed"
                        : "redoubt unseal --key-file key dump.rdb.sealed -o dump.rdb",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = work(&run, seal, &err) ? CLI_OK : cli_fail(cli, &err);
    backup_keys_done(&run.keys);
    vault_done(&run.vault);
    return status;
}

int tool_seal(struct cli *cli, int argc, char **argv)
{
    return run_tool(cli, argc, argv, true);
}

int tool_unseal(struct cli *cli, int argc, char **argv)
{
    return run_tool(cli, argc, argv, false);
}
