/* SPDX-License-Identifier: MIT */
/*
 * ilctl: the operator's tool, and the foreground of `make run`.
 *
 * `ilctl run` starts and watches everything on one machine, as systemd does
 * where Inline is installed:
 *
 *	ilctl run ─┬─ il-sandboxd      starts and ends the containers
 *	           ├─ il-worker -s 0…  run jobs, talk to Discord
 *	           ├─ il-fcgi          answers Discord
 *	           ├─ il-api           answers programs
 *	           ├─ standin.py       plays Discord when no keys are set
 *	           └─ nginx            in front of them, on loopback
 *
 * It passes them no message and reads none of theirs: it knows when one ends,
 * starts it again, and ends them all in an order that loses nothing.  They die
 * with it, whatever kills it.
 *
 * The other sub-commands each do one thing and end: migrate the database, list
 * sandboxes and jobs, remove what has expired, register the commands with
 * Discord, test an endpoint as Discord does, say what is wrong with an
 * installation.  Lists open the database like any other program, and delay no
 * other.  `expire` asks the broker to remove the folders; nothing here touches
 * a workspace or a container itself.
 *
 * Files: ilctl.c has the table of sub-commands, ilctl_run.c with child.c (the
 * watched programs) is `ilctl run`; README.md has the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/process.h"
#include "ctl/ctl.h"

#define EDITS_MOST 2 /* letters of a mistyped command that are wrong */
#define INSTALLED "/etc/inline/inline.env"

/* Markdown is for the manual page (inline.conf.5) and for people. */
static int
print_config(struct ctl *ctl, struct err *err)
{
	json_t *rows = json_array();
	struct config_row row;

	(void)err;
	for (size_t i = 0; config_find_row(i, &row); i++) {
		const char *quote = *row.fallback != '\0' ? "`" : "";

		if (ctl->json)
			(void)json_array_append_new(rows,
			    json_pack("{s:s, s:s, s:s}", "name", row.name,
				"default", row.fallback, "help", row.help));
		else
			printf("| `%s` | %s%s%s | %s |\n", row.name, quote,
			    row.fallback, quote, row.help);
	}
	if (ctl->json)
		return table_print_json(rows);
	json_decref(rows);
	return CTL_OK;
}

/* For /etc/inline/nodes.conf (systemd/INSTALL.md). */
static int
print_nginx(struct ctl *ctl, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(NODES_CONF_MAX);

	if (nodes_conf_add(&text, &ctl->config, err) != 0)
		return -1;
	printf("# Written by `ilctl nginx`; it holds the nodes' key.\n%s",
	    text.len > 0 ? buf_str(&text) : "# IL_NODES is empty: one host.\n");
	return CTL_OK;
}

static int
print_version(struct ctl *ctl, struct err *err)
{
	(void)ctl;
	(void)err;
	printf("Inline " INLINE_VERSION "\n");
	return CTL_OK;
}

static const struct command {
	const char *name;
	int (*run)(struct ctl *ctl, struct err *err);
	bool needs_config;
	bool reads;	   /* --json may stand anywhere behind it */
	const char *usage; /* NULL: it takes no other arguments */
	const char *help;
} commands[] = {
	{ "run", ctl_run, true, false, "run [-e envfile]",
	    "start everything and stay in the foreground" },
	{ "doctor", ctl_doctor, false, true, NULL,
	    "what is wrong, and what mends it" },
	{ "status", ctl_status, true, true, NULL, "what is running now" },
	{ "top", ctl_top, true, true, "top [-1]",
	    "cells and jobs of this moment" },
	{ "migrate", ctl_migrate, true, false, NULL,
	    "bring the database up to date" },
	{ "sandboxes", ctl_list, true, true, NULL, "list the sandboxes" },
	{ "jobs", ctl_list, true, true, "jobs [-u] [-n count]",
	    "list jobs, the newest first" },
	{ "backup", ctl_backup, true, false, "backup [-w seconds] folder",
	    "database and sandboxes, while all runs" },
	{ "restore", ctl_restore, true, false,
	    "restore [-f | -n | --user id [--to name]] folder",
	    "bring a backup back, or check it (-n)" },
	{ "expire", ctl_expire, true, false, NULL,
	    "remove what has expired, now" },
	{ "user", ctl_rules, true, true,
	    "user id [show | limits [name=value ...] | block [-c] [reason ...] "
	    "| unblock | cancel]",
	    "what a person has and may do" },
	{ "guild", ctl_rules, true, true,
	    "guild id [show | limits [name=value ...] | block [-c] [reason "
	    "...] | unblock | cancel]",
	    "the same of a server" },
	{ "service", ctl_rules, true, true,
	    "service [show | limits [name=value ...] | pause [-c] [reason ...] "
	    "| resume | banner [text ...]]",
	    "the same of all; what all are told" },
	{ "abuse", ctl_list, true, true,
	    "abuse [-u user] [-g guild] [-s 12h] [-n count]",
	    "who ran what kind of thing, and when" },
	{ "usage", ctl_list, true, true, "usage [-s 7d] [-n count]",
	    "who takes how much space, and sends how many commands" },
	{ "slow", ctl_list, true, true, "slow [-s 1h]",
	    "how long commands take, by kind and outcome" },
	{ "register", ctl_register, true, false,
	    "register [--guild id] [--endpoint URL]",
	    "tell Discord the commands, and where they go" },
	{ "commands", ctl_commands, true, false, NULL,
	    "print what register sends" },
	{ "selftest", ctl_selftest, false, false,
	    "selftest [--key-file file] https://host/interactions",
	    "test an endpoint as Discord does" },
	{ "token", ctl_token, false, true,
	    "token -f file [-c cells] [-r requests-a-minute] add|set name | "
	    "token -f file list | token -f file revoke name",
	    "make, list and revoke tokens of the APIs" },
	{ "packages", ctl_packages, true, true,
	    "packages add|remove name ... [--image 3.13] | "
	    "packages list [--image 3.13]",
	    "what runs of the APIs can import" },
	{ "nodes", ctl_nodes, true, true,
	    "nodes [plan --add|--remove name | "
	    "move slot ... --to name [-w seconds]]",
	    "the table of nodes, how each is; people go to another one" },
	{ "nginx", print_nginx, true, false, NULL,
	    "print what nginx needs to know of the others of IL_NODES" },
	{ "version", print_version, false, false, NULL, "print the version" },
	{ "config", print_config, false, true, NULL,
	    "print the table of settings" },
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

/* Does it belong to root or to us, with no one else allowed to write? */
static bool
is_own(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 &&
	    (st.st_uid == 0 || st.st_uid == geteuid()) &&
	    (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* An env file names programs that we start, so a stranger's is ignored. */
static const char *
find_beside(void)
{
	if (access(".env", F_OK) != 0)
		return NULL;
	if (is_own(".") && is_own(".env") && is_own("il_state"))
		return ".env";
	log_warn(".env is passed over: it, il_state or this folder belongs to "
		 "another user or may be written by others; -e .env takes it");
	return NULL;
}

/* Find the env file, in this order: that of -e; NULL where IL_ENV_FILE names
 * one; .env beside an il_state in the current folder, if is_own() holds for the
 * three (otherwise a line says that it is passed over); that of an
 * installation.  NULL: the environment alone. */
static const char *
find_env_file(const char *named)
{
	const char *said = getenv("IL_ENV_FILE");

	/* an empty IL_ENV_FILE says that there is none */
	if (named != NULL || said != NULL || getenv("IL_STATE_DIR") != NULL)
		return named;
	if (access("il_state", F_OK) == 0)
		return find_beside();
	return access(INSTALLED, R_OK) == 0 ? INSTALLED : NULL;
}

static int
ilctl_usage(FILE *out)
{
	(void)fprintf(out,
	    "usage: ilctl [-e envfile] command [argument ...]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		(void)fprintf(out, "  %-10s %s\n", commands[i].name,
		    commands[i].help);
	return CTL_USAGE;
}

/* A mistyped command is not done: NULL, and ilctl names the nearest one. */
static const struct command *
ilctl_find_command(const char *name)
{
	const struct command *nearest = NULL;
	size_t least = EDITS_MOST + 1;

	for (size_t i = 0; i < COMMANDS && least > 0; i++) {
		size_t edits = nearest_distance(name, commands[i].name);

		if (edits < least) {
			least = edits;
			nearest = &commands[i];
		}
	}
	if (least == 0)
		return nearest;
	(void)fprintf(stderr, "ilctl: there is no command '%s'", name);
	if (nearest != NULL) {
		(void)fprintf(stderr, "; did you mean '%s'?\n", nearest->name);
		return NULL;
	}
	(void)fprintf(stderr, "\n");
	(void)ilctl_usage(stderr);
	return NULL;
}

/* Prints the usage of all commands, or of one. */
static int
ilctl_help(const char *name)
{
	const struct command *command;

	if (name == NULL) {
		(void)ilctl_usage(stdout);
		return CTL_OK;
	}
	command = ilctl_find_command(name);
	if (command == NULL)
		return CTL_USAGE;
	printf("usage: ilctl [-e envfile] %s%s\n\n  %s; see ilctl(8)\n",
	    command->usage != NULL ? command->usage : command->name,
	    command->reads ? " [--json]" : "", command->help);
	return CTL_OK;
}

/* Output that cannot be written is a failure, as a pipe may read it. */
static int
ilctl_run_command(const struct command *command, struct ctl *ctl)
{
	struct err err = { 0 };
	int code = CTL_MISUSED;

	if (command->needs_config &&
	    config_load(&ctl->config, ctl->env_file, &err) != 0) {
		(void)ctl_fail(command->name, &err);
		return CTL_CONFIG;
	}
	ctl->json = command->reads && ctl_cut(ctl, "--json", 1) != NULL;
	optind = 0; /* each command reads its own options */
	if (ctl->argc == 1 || command->usage != NULL)
		code = command->run(ctl, &err);
	if (code == -1)
		code = ctl_fail(command->name, &err);
	if (code == CTL_MISUSED) {
		(void)fprintf(stderr, "usage: ilctl %s%s\n",
		    command->usage != NULL ? command->usage : command->name,
		    command->reads ? " [--json]" : "");
		code = CTL_USAGE;
	}
	config_release(&ctl->config);
	if (fflush(stdout) != 0 || ferror(stdout) != 0)
		return code == CTL_OK ? CTL_FAILED : code;
	return code;
}

int
main(int argc, char **argv)
{
	const struct command *command;
	struct ctl ctl = { 0 };
	int c;

	log_init("ilctl", LOG_LEVEL_INFO);
	while ((c = getopt(argc, argv, "+e:h")) != -1) {
		if (c == 'h') {
			(void)ilctl_usage(stdout);
			return CTL_OK;
		}
		if (c != 'e')
			return ilctl_usage(stderr);
		ctl.env_file = optarg;
	}
	if (optind == argc)
		return ilctl_usage(stderr);
	ctl.argc = argc - optind;
	ctl.argv = argv + optind;
	if (strcmp(ctl.argv[0], "help") == 0)
		return ilctl_help(ctl.argv[1]);
	process_extend_path();
	ctl.env_file = find_env_file(ctl.env_file);
	command = ilctl_find_command(ctl.argv[0]);
	return command != NULL ? ilctl_run_command(command, &ctl) : CTL_USAGE;
}
