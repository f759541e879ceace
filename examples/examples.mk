# Example programs in C, built as any verbs program is: against libibverbs and
# librdmacm. Three ways to connect, a server and a client of each.

EXAMPLES := ep cmid device
EXAMPLE_PROGRAMS := $(foreach e,$(EXAMPLES),build/examples/$(e)-server build/examples/$(e)-client)
EXAMPLE_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror

.PHONY: examples
examples: $(EXAMPLE_PROGRAMS)

define example_rule
build/examples/$(1)-$(2): examples/c/$(1)/$(2).c examples/c/$(1)/$(1).h examples/c/pattern.h
	@mkdir -p $$(@D)
	$$(CC) $$(EXAMPLE_CFLAGS) $$< -o $$@ -lrdmacm -libverbs
endef

$(foreach e,$(EXAMPLES),$(eval $(call example_rule,$(e),server))$(eval $(call example_rule,$(e),client)))
