#include "tools/cli/cli.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

/* Every kind of option, and what is in it before the command line is read. */
struct values {
    bool flag;
    bool on;
    const char *string;
    uint64_t count;
    uint64_t size;
    int64_t time_ms;
    int choice;
    char each[64];
};

static struct values values;
static struct cli cli;

static bool note_each(void *ctx, const char *value, struct rd_err *err)
{
    size_t len = strlen(values.each);
    const char *kind = ctx;
    if (value != NULL && strcmp(value, "bad") == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no good");
    snprintf(values.each + len, sizeof values.each - len, "%s%s ", kind,
             value != NULL ? value : "");
    return true;
}

enum { ARGS_MAX = 8 };

static char words[ARGS_MAX + 1][32]; /* options borrow from the command line */

/* Copies the words after the program's name; returns argc. */
static int collect(char **ret_argv, const char *first, va_list args)
{
    int n = 1;
    ret_argv[0] = words[0];
    for (const char *word = first; word != NULL && n < ARGS_MAX; n++) {
        snprintf(words[n], sizeof words[n], "%s", word);
        ret_argv[n] = words[n];
        word = va_arg(args, const char *);
    }
    return n;
}

/* Parses the words up to NULL; what that would print goes nowhere. */
static int parse(const char *first, ...)
{
    static char want[] = "want", never[] = "not";
    values = (struct values){.on = true, .string = "default", .count = 3, .choice = 1};
    const struct cli_opt opts[] = {
        {.name = "flag", .letter = 'f', .kind = CLI_FLAG, .flag = &values.flag, .help = "x"},
        {.name = "on", .kind = CLI_FLAG, .flag = &values.on, .help = "x"},
        {.name = "string", .letter = 's', .kind = CLI_STRING, .string = &values.string},
        {.name = "count", .letter = 'n', .kind = CLI_COUNT, .number = &values.count},
        {.name = "size", .kind = CLI_SIZE, .number = &values.size},
        {.name = "time", .kind = CLI_TIME, .time_ms = &values.time_ms},
        {.name = "to", .kind = CLI_ENUM, .words = "rdb|aof|resp", .choice = &values.choice},
        {.name = "db", .kind = CLI_EACH, .arg = "N", .each = note_each, .ctx = want},
        {.name = "not", .kind = CLI_EACH, .each = note_each, .ctx = never},
        {.letter = 'h', .kind = CLI_STRING, .arg = "HOST", .string = &values.string},
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…]", .about = "Tests.", .opts = opts, .max_args = 3};
    char *argv[ARGS_MAX];
    va_list args;
    va_start(args, first);
    int argc = collect(argv, first, args);
    va_end(args);
    int null = open("/dev/null", O_WRONLY);
    int saved = dup(STDERR_FILENO);
    dup2(null, STDERR_FILENO);
    int status = -1;
    cli_begin(&cli, "test");
    bool go_on = cli_parse(&cli, &usage, argc, argv, &status);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(null);
    cr_assert_eq(go_on, status == CLI_OK);
    return status;
}

static void done(void)
{
    cli_forget_arguments(&cli);
}

Test(cli, what_is_not_given_keeps_its_default)
{
    cr_assert_eq(parse("a", NULL), CLI_OK);
    cr_assert(values.on);
    cr_assert_not(values.flag);
    cr_assert_str_eq(values.string, "default");
    cr_assert_eq(values.count, 3);
    cr_assert_eq(values.choice, 1);
    done();
}

Test(cli, values_follow_the_equals_sign_or_are_the_next_argument)
{
    cr_assert_eq(
        parse("--string=a=b", "--count", "7", "--size=64kb", "--time", "0", "--to=resp", NULL),
        CLI_OK);
    cr_assert_str_eq(values.string, "a=b");
    cr_assert_eq(values.count, 7);
    cr_assert_eq(values.size, 65536);
    cr_assert_eq(values.time_ms, 0);
    cr_assert_eq(values.choice, 2);
    cr_assert_eq(cli.n_args, 0);
    done();
}

Test(cli, letters_are_bundled_and_the_last_may_take_a_value)
{
    cr_assert_eq(parse("-fvqn42", "-v", "-s", "-x", NULL), CLI_OK);
    cr_assert(values.flag);
    cr_assert(cli.quiet);
    cr_assert_eq(cli.verbose, 2);
    cr_assert_eq(values.count, 42);
    cr_assert_str_eq(values.string, "-x");
    done();
}

Test(cli, flags_are_negated_with_no)
{
    cr_assert_eq(parse("--no-on", "--flag", "--no-flag", NULL), CLI_OK);
    cr_assert_not(values.on);
    cr_assert_not(values.flag);
    done();
}

Test(cli, arguments_mix_with_options_until_two_dashes)
{
    cr_assert_eq(parse("a", "--flag", "-", "--", "--json", NULL), CLI_OK);
    cr_assert_eq(cli.n_args, 3);
    cr_assert_str_eq(cli.args[0], "a");
    cr_assert_str_eq(cli.args[1], "-");
    cr_assert_str_eq(cli.args[2], "--json");
    cr_assert_not(cli.json);
    done();
}

Test(cli, each_is_called_in_the_order_of_the_command_line)
{
    cr_assert_eq(parse("--db=1", "--not", "--db", "2", NULL), CLI_OK);
    cr_assert_str_eq(values.each, "want1 not want2 ");
    done();
}

Test(cli, a_tools_letter_hides_the_common_one)
{
    cr_assert_eq(parse("-h", "example.org", NULL), CLI_OK);
    cr_assert_str_eq(values.string, "example.org");
    done();
}

Test(cli, what_makes_no_sense_is_a_usage_error)
{
    static const char *const bad[] = {"--flga",       "--flag=1",     "--count=x", "--count=-1",
                                      "--count=",     "--size=64q",   "--time=x",  "--to=csv",
                                      "--to=",        "--to=rdb|aof", "--to=rd",   "--db=bad",
                                      "--string",     "-s",           "-fz",       "--no-string",
                                      "--no-nothing", "--not=1",      "--=1",      "-n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(parse(bad[i], NULL), CLI_USAGE, "%s", bad[i]);
        done();
    }
    cr_assert_eq(parse("a", "b", "c", "d", NULL), CLI_USAGE);
    done();
}

Test(cli, exit_statuses_agree_with_the_errors)
{
    cr_assert_eq(rd_err_exit_status(RD_ERR_CORRUPT), CLI_FINDINGS);
    cr_assert_eq(rd_err_exit_status(RD_ERR_USAGE), CLI_USAGE);
    cr_assert_eq(rd_err_exit_status(RD_ERR_IO), CLI_IO);
    cr_assert_eq(rd_err_exit_status(RD_ERR_UNSUPPORTED), CLI_UNSUPPORTED);
    cr_assert_eq(rd_err_exit_status(RD_ERR_LIMIT), CLI_LIMIT);
    cr_assert_eq(rd_err_exit_status(RD_ERR_PROTOCOL), CLI_PROTOCOL);
    cr_assert_eq(rd_err_exit_status(RD_ERR_LOCKED), CLI_LOCKED);
    cr_assert_eq(rd_err_exit_status(RD_ERR_CANCELLED), CLI_INTERRUPTED);
}

Test(cli, the_nearest_name_is_found)
{
    static const char *const names[] = {"check-rdb", "check-aof", "convert", "sum"};
    cr_assert_str_eq(cli_nearest("chek-rdb", names, 4), "check-rdb");
    cr_assert_str_eq(cli_nearest("check-aoff", names, 4), "check-aof");
    cr_assert_str_eq(cli_nearest("conv", names, 4), "convert");
    cr_assert_str_eq(cli_nearest("sun", names, 4), "sum");
    cr_assert_null(cli_nearest("elephant", names, 4));
    cr_assert_null(cli_nearest("bud", names, 4), "another first letter");
    cr_assert_null(cli_nearest("", names, 4));
}
