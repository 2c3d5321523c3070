#include <stdio.h>

#include "ctl.h"

int
ctl_config(struct ctl *ctl, int argc, char **argv)
{
	(void)ctl;
	(void)argv;
	if (argc != 1)
		return ctl_usage("config");
	config_print_table(stdout);
	return CTL_OK;
}
