#include "tools/cli/filter.h"

/* Without REG_STARTEND, long names are copied. */
static struct cli *exhausted_cli;

static void exhausted(size_t size)
{
    cli_out_of_memory(exhausted_cli, size);
}

void cli_filter_init(struct filter *filter, struct cli *cli, int64_t now_ms)
{
    exhausted_cli = cli;
    filter_init(filter, now_ms);
    filter->exhausted = exhausted;
}

int cli_filter_nothing(struct cli *cli, const char *done)
{
    cli_warn(cli, "no key matches the filter: nothing was %s", done);
    if (cli->json)
        json_put_bool(&cli->out, "nothing_matched", true);
    return CLI_FINDINGS;
}
