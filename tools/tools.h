/* tools.h - one function a tool; main.c has the table.
 */
#ifndef TOOLS_TOOLS_H
#define TOOLS_TOOLS_H

#include "tools/cli/cli.h"

/* Each takes argv[0] as the tool's name and returns an exit status (enum cli_status). */
int tool_archive(struct cli *cli, int argc, char **argv);
int tool_backup(struct cli *cli, int argc, char **argv);
int tool_blame(struct cli *cli, int argc, char **argv);
int tool_browse(struct cli *cli, int argc, char **argv);
int tool_capture(struct cli *cli, int argc, char **argv);
int tool_check_aof(struct cli *cli, int argc, char **argv);
int tool_check_rdb(struct cli *cli, int argc, char **argv);
int tool_check_config(struct cli *cli, int argc, char **argv);
int tool_cluster(struct cli *cli, int argc, char **argv);
int tool_convert(struct cli *cli, int argc, char **argv);
int tool_demo(struct cli *cli, int argc, char **argv);
int tool_diff(struct cli *cli, int argc, char **argv);
int tool_doctor(struct cli *cli, int argc, char **argv);
int tool_history(struct cli *cli, int argc, char **argv);
int tool_list(struct cli *cli, int argc, char **argv);
int tool_merge(struct cli *cli, int argc, char **argv);
int tool_migrate(struct cli *cli, int argc, char **argv);
int tool_copy(struct cli *cli, int argc, char **argv);
int tool_pause(struct cli *cli, int argc, char **argv);
int tool_prune(struct cli *cli, int argc, char **argv);
int tool_replay(struct cli *cli, int argc, char **argv);
int tool_resume(struct cli *cli, int argc, char **argv);
int tool_restore(struct cli *cli, int argc, char **argv);
int tool_seal(struct cli *cli, int argc, char **argv);
int tool_show(struct cli *cli, int argc, char **argv);
int tool_split(struct cli *cli, int argc, char **argv);
int tool_stat(struct cli *cli, int argc, char **argv);
int tool_sum(struct cli *cli, int argc, char **argv);
int tool_undo(struct cli *cli, int argc, char **argv);
int tool_unlock(struct cli *cli, int argc, char **argv);
int tool_unseal(struct cli *cli, int argc, char **argv);
int tool_verify(struct cli *cli, int argc, char **argv);
int tool_version(struct cli *cli, int argc, char **argv);

/* The program: finds the tool and runs it, once in a process (main.c). */
int tools_main(int argc, char **argv);

#endif
