/* cli.c - parses the command line and prints the help. */
#include "tools/cli/cli.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/time.h"

#include <stdarg.h>
#include <stdlib.h>

enum { MATCH_MAX = 64, HELP_COLUMN = 28, HELP_WIDTH = 79 };

/* ---- the most similar name ---- */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* The edit distance (insertions, deletions, substitutions) of two words; a large number if one of
 * them is long. */
static size_t distance(const char *a, const char *b)
{
    size_t row[MATCH_MAX + 1];
    size_t len_a = strlen(a), len_b = strlen(b);
    if (len_a > MATCH_MAX || len_b > MATCH_MAX)
        return MATCH_MAX;
    for (size_t j = 0; j <= len_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= len_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = min3(above + 1, row[j - 1] + 1, change);
            diagonal = above;
        }
    }
    return row[len_b];
}

const char *cli_nearest(const char *word, const char *const *names, size_t n)
{
    size_t best = 1 + strlen(word) / 3;
    const char *nearest = NULL;
    for (size_t i = 0; strlen(word) >= 2 && i < n; i++)
        if (strncmp(word, names[i], strlen(word)) == 0)
            return names[i];
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, names[i]);
        /* Who begins with another letter rarely meant this one. */
        if (d <= best && (d <= 1 || word[0] == names[i][0])) {
            nearest = names[i];
            best = d > 0 ? d - 1 : 0;
        }
    }
    return nearest;
}

/* ---- parsing ---- */

struct parser {
    struct cli *cli;
    const struct cli_opt *opts;   /* the tool's */
    const struct cli_opt *common; /* every tool's */
    int argc;
    char **argv;
    int next; /* index of the next argument to parse */
};

static bool is_last(const struct cli_opt *opt)
{
    return opt->name == NULL && opt->letter == '\0';
}

static const struct cli_opt *find_name(const struct cli_opt *opts, struct rd_slice name)
{
    for (; opts != NULL && !is_last(opts); opts++) {
        if (opts->name != NULL && rd_slice_is(name, opts->name))
            return opts;
    }
    return NULL;
}

static const struct cli_opt *find_letter(const struct cli_opt *opts, char letter)
{
    for (; opts != NULL && !is_last(opts); opts++) {
        if (opts->letter == letter)
            return opts;
    }
    return NULL;
}

/* A tool's option hides a common one of the same name. */
static const struct cli_opt *find_long(const struct parser *p, struct rd_slice name)
{
    const struct cli_opt *opt = find_name(p->opts, name);
    return opt != NULL ? opt : find_name(p->common, name);
}

static const struct cli_opt *find_short(const struct parser *p, char letter)
{
    const struct cli_opt *opt = find_letter(p->opts, letter);
    return opt != NULL ? opt : find_letter(p->common, letter);
}

static bool takes_value(const struct cli_opt *opt)
{
    return opt->kind != CLI_FLAG && !(opt->kind == CLI_EACH && opt->arg == NULL);
}

/* The name of an option in messages: "--name" or "-c". */
static struct rd_shown spell(const struct cli_opt *opt)
{
    struct rd_shown text;
    if (opt->name != NULL)
        snprintf(text.s, sizeof text.s, "--%s", opt->name);
    else
        snprintf(text.s, sizeof text.s, "-%c", opt->letter);
    return text;
}

static int refuse(struct cli *cli, const struct cli_opt *opt, const char *value, const char *what)
{
    char quoted[100];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(value));
    return cli_usage_error(cli, "%s: %s is not %s", spell(opt).s, quoted, what);
}

/* "auto|always|never" becomes "one of auto, always, never". */
static int refuse_word(struct cli *cli, const struct cli_opt *opt, const char *value)
{
    char list[300];
    size_t len = (size_t)snprintf(list, sizeof list, "one of ");
    for (const char *at = opt->words; *at != '\0' && len + 3 < sizeof list; at++) {
        list[len++] = *at == '|' ? ',' : *at;
        if (*at == '|')
            list[len++] = ' ';
    }
    list[len] = '\0';
    return refuse(cli, opt, value, list);
}

static bool choose(const struct cli_opt *opt, const char *value)
{
    int index = 0;
    for (const char *word = opt->words;; index++) {
        size_t len = strcspn(word, "|");
        if (rd_slice_is(rd_slice(word, len), value)) {
            *opt->choice = index;
            return true;
        }
        if (word[len] == '\0')
            return false;
        word += len + 1;
    }
}

static int call_each(struct cli *cli, const struct cli_opt *opt, const char *value)
{
    struct rd_err err = {0};
    if (opt->each(opt->ctx, value, &err))
        return CLI_OK;
    if (err.code != RD_ERR_USAGE)
        return cli_fail(cli, &err);
    return cli_usage_error(cli, "%s: %s", spell(opt).s, err.text);
}

/* Stores a value (NULL for options without one). */
static int store(struct cli *cli, const struct cli_opt *opt, const char *value)
{
    switch (opt->kind) {
    case CLI_FLAG:
        *opt->flag = true;
        return CLI_OK;
    case CLI_STRING:
        *opt->string = value;
        return CLI_OK;
    case CLI_COUNT:
        if (!rd_num_get_u64(rd_slice_str(value), opt->number))
            return refuse(cli, opt, value, "a number");
        return CLI_OK;
    case CLI_SIZE:
        if (!rd_num_get_size(rd_slice_str(value), opt->number))
            return refuse(cli, opt, value, "a size such as 64kb or 1gb");
        return CLI_OK;
    case CLI_TIME:
        if (!rd_time_get(value, cli_now_ms(), opt->time_ms))
            return refuse(cli, opt, value,
                          "a time such as 2024-05-01T12:00:00Z, -15m or unix time");
        return CLI_OK;
    case CLI_SPAN:
        if (!rd_time_get_span(value, opt->number))
            return refuse(cli, opt, value, "a length of time such as 90s or 2h30m");
        return CLI_OK;
    case CLI_ENUM:
        return choose(opt, value) ? CLI_OK : refuse_word(cli, opt, value);
    case CLI_EACH:
        return call_each(cli, opt, value);
    }
    return CLI_OK;
}

/* The value of an option in the next argument. */
static int store_next(struct parser *p, const struct cli_opt *opt)
{
    if (p->next >= p->argc)
        return cli_usage_error(p->cli, "option %s requires %s", spell(opt).s,
                               opt->arg != NULL ? opt->arg : "an argument");
    return store(p->cli, opt, p->argv[p->next++]);
}

static const char *nearest_option(const struct parser *p, const char *word)
{
    const char *names[MATCH_MAX];
    size_t n = 0;
    for (const struct cli_opt *o = p->opts; o != NULL && !is_last(o) && n < MATCH_MAX; o++) {
        if (o->name != NULL)
            names[n++] = o->name;
    }
    for (const struct cli_opt *o = p->common; !is_last(o) && n < MATCH_MAX; o++) {
        if (o->name != NULL)
            names[n++] = o->name;
    }
    return cli_nearest(word, names, n);
}

/* For other tools --key is the private key of TLS. A user who types it here may mean the filter. */
static const char *filter_option(const struct parser *p, const char *word)
{
    const char *name = strcmp(word, "key") == 0         ? "match"
                       : strcmp(word, "key-regex") == 0 ? "match-regex"
                                                        : NULL;
    return name != NULL && find_name(p->opts, rd_slice_str(name)) != NULL ? name : NULL;
}

static int unknown_long(struct parser *p, struct rd_slice name)
{
    char word[MATCH_MAX];
    snprintf(word, sizeof word, "%.*s", (int)name.len, (const char *)name.ptr);
    char quoted[100];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(word));
    quoted[strlen(quoted) - 1] = '\0'; /* the name is escaped, but not quoted */
    const char *near = filter_option(p, word);
    if (near != NULL)
        return cli_usage_error(p->cli, "unknown option --%s: use --%s to select keys", word, near);
    near = nearest_option(p, word);
    if (near != NULL)
        return cli_usage_error(p->cli, "unknown option --%s; did you mean --%s?", quoted + 1, near);
    return cli_usage_error(p->cli, "unknown option --%s", quoted + 1);
}

/* --name, --name=value, --name value, --no-name */
static int parse_long(struct parser *p, const char *text)
{
    const char *equals = strchr(text, '=');
    struct rd_slice name = rd_slice(text, equals != NULL ? (size_t)(equals - text) : strlen(text));
    const struct cli_opt *opt = find_long(p, name);
    if (opt == NULL && equals == NULL && strncmp(text, "no-", 3) == 0) {
        opt = find_long(p, rd_slice_str(text + 3));
        if (opt != NULL && opt->kind == CLI_FLAG) {
            *opt->flag = false;
            return CLI_OK;
        }
        opt = NULL;
    }
    if (opt == NULL)
        return unknown_long(p, name);
    if (!takes_value(opt)) {
        if (equals != NULL)
            return cli_usage_error(p->cli, "option %s takes no value", spell(opt).s);
        return store(p->cli, opt, NULL);
    }
    return equals != NULL ? store(p->cli, opt, equals + 1) : store_next(p, opt);
}

/* -a, -abc, -oVALUE, -o VALUE */
static int parse_short(struct parser *p, const char *text)
{
    for (; *text != '\0'; text++) {
        const struct cli_opt *opt = find_short(p, *text);
        if (opt == NULL) {
            char quoted[16];
            rd_err_quote(quoted, sizeof quoted, rd_slice(text, 1));
            quoted[strlen(quoted) - 1] = '\0';
            return cli_usage_error(p->cli, "unknown option -%s", quoted + 1);
        }
        if (takes_value(opt) && text[1] == '\0' && p->next >= p->argc) {
            const struct cli_opt *common = find_letter(p->common, *text);
            opt = common != NULL ? common : opt;
        }
        if (takes_value(opt))
            return text[1] != '\0' ? store(p->cli, opt, text + 1) : store_next(p, opt);
        int status = store(p->cli, opt, NULL);
        if (status != CLI_OK)
            return status;
    }
    return CLI_OK;
}

/* Changes SCHEME://USER:PASSWORD@HOST to SCHEME://HOST in argv, which process lists, errors and
 * reports show. */
bool cli_add_argument(struct cli *cli, char *arg, struct rd_err *err)
{
    size_t i = cli->n_args++;
    size_t len = strlen(arg);
    char *colon = strstr(arg, "://");
    char *at = strrchr(arg, '@');
    cli->args[i] = arg;
    if (colon == NULL || at == NULL || at < colon + 3)
        return true;
    cli->urls[i] = rd_alloc(len + 1);
    if (cli->urls[i] == NULL)
        return rd_err_nomem(err, len + 1);
    memcpy(cli->urls[i], arg, len + 1);
    size_t lost = (size_t)(at + 1 - (colon + 3));
    memmove(colon + 3, at + 1, strlen(at + 1) + 1);
    explicit_bzero(arg + len - lost, lost);
    return true;
}

static int take_argument(struct cli *cli, char *arg)
{
    struct rd_err err = {0};
    return cli_add_argument(cli, arg, &err) ? CLI_OK : cli_fail(cli, &err);
}

const char *cli_url(const struct cli *cli, size_t i)
{
    if (i >= cli->n_args)
        return NULL;
    return cli->urls[i] != NULL ? cli->urls[i] : cli->args[i];
}

void cli_forget_arguments(struct cli *cli)
{
    for (size_t i = 0; cli->urls != NULL && i < cli->n_args; i++) {
        if (cli->urls[i] != NULL)
            explicit_bzero(cli->urls[i], strlen(cli->urls[i]));
        rd_free(cli->urls[i]);
    }
    rd_free(cli->urls);
    rd_free(cli->args);
    cli->urls = cli->args = NULL;
    cli->n_args = 0;
}

static const struct cli_opt *find_time(const struct parser *p, const char *name)
{
    const struct cli_opt *opt = find_name(p->opts, rd_slice_str(name));
    return opt != NULL && opt->kind == CLI_TIME ? opt : NULL;
}

/* A range that ends before it begins selects nothing, which would look like an answer. A time of
 * day that has not come yet is one of yesterday. Times that are not given are the least or the
 * greatest number. */
static int check_range(const struct parser *p)
{
    const struct cli_opt *until = find_time(p, "until"), *from = find_time(p, "from");
    from = from != NULL ? from : find_time(p, "since");
    if (from == NULL || until == NULL || *from->time_ms == INT64_MIN ||
        *until->time_ms == INT64_MIN || *until->time_ms >= *from->time_ms)
        return CLI_OK;
    return cli_usage_error(p->cli, "--until (%s) is before --%s (%s)",
                           rd_show_time(*until->time_ms).s, from->name,
                           rd_show_time(*from->time_ms).s);
}

static int parse_all(struct parser *p)
{
    bool options = true;
    while (p->next < p->argc) {
        char *arg = p->argv[p->next++];
        int status = CLI_OK;
        if (options && strcmp(arg, "--") == 0)
            options = false;
        else if (options && strncmp(arg, "--", 2) == 0)
            status = parse_long(p, arg + 2);
        else if (options && arg[0] == '-' && arg[1] != '\0')
            status = parse_short(p, arg + 1);
        else
            status = take_argument(p->cli, arg);
        if (status != CLI_OK)
            return status;
    }
    return check_range(p);
}

/* ---- help ---- */

static void print_synopsis(const struct cli *cli, const char *synopsis)
{
    int indent = printf("usage: redoubt %s ", cli->tool);
    for (const char *line = synopsis; line != NULL;) {
        const char *end = strchr(line, '\n');
        printf("%.*s\n", end != NULL ? (int)(end - line) : (int)strlen(line), line);
        if (end != NULL)
            printf("%*s", indent, "");
        line = end != NULL ? end + 1 : NULL;
    }
}

/* "--to=rdb|aof", "--quick", "-h HOST". A choice of more than `max` characters is "WORD". */
static void spell_with_value(const struct cli_opt *opt, size_t max, char *dst, size_t size)
{
    const char *arg = opt->arg != NULL ? opt->arg : opt->words;
    if (arg != NULL && strchr(arg, '|') != NULL && strlen(arg) > max)
        arg = "WORD";
    bool value = takes_value(opt) && arg != NULL;
    const char *link = !value ? "" : opt->name != NULL ? "=" : " ";
    snprintf(dst, size, "%s%s%s", spell(opt).s, link, value ? arg : "");
}

static void print_option(const struct cli_opt *opt)
{
    char spelled[100], left[120];
    char letter[8] = "    ";
    if (opt->letter != '\0' && opt->name != NULL)
        snprintf(letter, sizeof letter, "-%c, ", opt->letter);
    spell_with_value(opt, SIZE_MAX, spelled, sizeof spelled);
    snprintf(left, sizeof left, "  %s%s", opt->name != NULL ? letter : "", spelled);
    if (strlen(left) >= HELP_COLUMN)
        printf("%s\n%*s%s\n", left, HELP_COLUMN, "", opt->help);
    else
        printf("%-*s%s\n", HELP_COLUMN, left, opt->help);
}

enum { BRIEF_VALUE = 12 };

/* The characters that they take with their values. */
static size_t brief_length(const struct cli_opt *opts)
{
    size_t n = 0;
    for (; opts != NULL && !is_last(opts); opts++) {
        char spelled[100];
        if (!opts->brief)
            continue;
        spell_with_value(opts, BRIEF_VALUE, spelled, sizeof spelled);
        n += strlen(spelled) + 1;
    }
    return n;
}

/* The options without a line of their own: their names in a paragraph, without values if there are
 * many. What does not fit into a line leaves its room to shorter ones. */
static void print_brief(const struct cli_opt *opts)
{
    enum { BRIEF_LONG = 480, OPTS_MAX = 128 };
    bool is_long = brief_length(opts) > BRIEF_LONG;
    static const char lead[] = "  also:";
    bool printed[OPTS_MAX] = {false};
    const char *begin = lead;
    for (bool more = true; more; begin = "       ") {
        size_t column = 0;
        more = false;
        for (size_t i = 0; opts != NULL && !is_last(&opts[i]) && i < OPTS_MAX; i++) {
            char spelled[100];
            if (!opts[i].brief || printed[i])
                continue;
            if (is_long)
                snprintf(spelled, sizeof spelled, "%s", spell(&opts[i]).s);
            else
                spell_with_value(&opts[i], BRIEF_VALUE, spelled, sizeof spelled);
            if (column > 0 && column + strlen(spelled) + 1 > HELP_WIDTH) {
                more = true;
                continue;
            }
            if (column == 0)
                column = (size_t)printf("%s", begin);
            column += (size_t)printf(" %s", spelled);
            printed[i] = true;
        }
        if (column > 0)
            printf("\n");
    }
}

static void print_apart(const struct cli_opt *opts)
{
    for (const struct cli_opt *opt = opts; opt != NULL && !is_last(opt); opt++) {
        if (!opt->apart)
            continue;
        printf("  a server: --pass-file=FILE, --cacert=FILE and others: see man redoubt\n");
        return;
    }
}

/* all: with a line for each option that is otherwise listed by its name only. */
static void print_help(const struct cli *cli, const struct cli_usage *usage, bool all)
{
    print_synopsis(cli, usage->synopsis);
    printf("\n%s\n\n", usage->about);
    for (const struct cli_opt *opt = usage->opts; opt != NULL && !is_last(opt); opt++) {
        if (opt->help != NULL && !opt->apart && (all || !opt->brief))
            print_option(opt);
    }
    if (!all)
        print_brief(usage->opts);
    print_apart(usage->opts);
    printf("  every tool: --json, --progress=auto|always|never|json, -q/--quiet, --help,\n"
           "              -v/--verbose, --color=auto|always|never, --help-all, --version\n");
    if (usage->example != NULL)
        printf("\nExample:\n  %s\n", usage->example);
}

/* For the completions: a line for each option, with its values if they are known. Former names of
 * options have no help. */
static void list_options(const struct cli_opt *opts, bool hidden)
{
    for (const struct cli_opt *opt = opts; opt != NULL && !is_last(opt); opt++) {
        if (opt->name == NULL || (opt->help == NULL && !opt->brief && !hidden))
            continue;
        printf("--%s%s%s\n", opt->name, opt->words != NULL ? " " : "",
               opt->words != NULL ? opt->words : "");
    }
}

void cli_print_version(void)
{
    printf("redoubt %s\n", REDOUBT_VERSION_STRING);
}

static bool count_verbose(void *ctx, const char *value, struct rd_err *err)
{
    unsigned *verbose = ctx;
    (void)value;
    (void)err;
    ++*verbose;
    return true;
}

/* A usage error is also reported in JSON if --json is anywhere in the command line. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0)
            return true;
    }
    return false;
}

/* The synopsis is the first line: the others are other uses of the tool. */
int cli_missing_argument(struct cli *cli, const struct cli_usage *usage)
{
    return cli_usage_error(cli, "missing argument: %s %.*s", cli->tool,
                           (int)strcspn(usage->synopsis, "\n"), usage->synopsis);
}

static int check_args(struct cli *cli, const struct cli_usage *usage)
{
    if (cli->n_args < usage->min_args)
        return cli_missing_argument(cli, usage);
    if (cli->n_args > usage->max_args) {
        char quoted[100];
        rd_err_quote(quoted, sizeof quoted, rd_slice_str(cli->args[usage->max_args]));
        return cli_usage_error(cli, "unexpected argument %s", quoted);
    }
    return CLI_OK;
}

bool cli_parse(struct cli *cli, const struct cli_usage *usage, int argc, char **argv,
               int *ret_status)
{
    bool help = false, help_all = false, version = false;
    const struct cli_opt common[] = {
        {.name = "json", .kind = CLI_FLAG, .flag = &cli->json},
        {.name = "quiet", .letter = 'q', .kind = CLI_FLAG, .flag = &cli->quiet},
        {.name = "verbose",
         .letter = 'v',
         .kind = CLI_EACH,
         .each = count_verbose,
         .ctx = &cli->verbose},
        {.name = "progress",
         .kind = CLI_ENUM,
         .words = "auto|always|never|json",
         .choice = &cli->progress_when},
        {.name = "color",
         .kind = CLI_ENUM,
         .words = "auto|always|never",
         .choice = &cli->color_when},
        {.name = "help", .letter = 'h', .kind = CLI_FLAG, .flag = &help},
        {.name = "help-all", .kind = CLI_FLAG, .flag = &help_all},
        {.name = "version", .letter = 'V', .kind = CLI_FLAG, .flag = &version},
        {0},
    };
    struct parser parser = {cli, usage->opts, common, argc, argv, 1};

    cli_forget_arguments(cli);
    cli->args = rd_calloc((size_t)argc + 1, sizeof *cli->args);
    cli->urls = rd_calloc((size_t)argc + 1, sizeof *cli->urls);
    if (cli->args == NULL || cli->urls == NULL) {
        struct rd_err err = {0};
        rd_err_nomem(&err, (size_t)argc * sizeof *cli->args);
        *ret_status = cli_fail(cli, &err);
        return false;
    }
    if (argc == 2 && strcmp(argv[1], "--list-options") == 0) {
        list_options(usage->opts, false);
        list_options(common, true);
        *ret_status = CLI_OK;
        return false;
    }
    cli->json = wants_json(argc, argv);
    *ret_status = parse_all(&parser);
    if (*ret_status != CLI_OK)
        return false;
    if (help || help_all || version) {
        cli->json = false;
        if (help || help_all)
            print_help(cli, usage, help_all);
        else
            cli_print_version();
        return false;
    }
    *ret_status = check_args(cli, usage);
    if (*ret_status == CLI_OK && usage->json_lines != NULL) {
        *usage->json_lines = cli->json;
        cli->json = false;
    }
    return *ret_status == CLI_OK && cli_json_begin(cli, ret_status);
}
