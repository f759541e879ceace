# lib.mk - build/liburdma.so, the preloadable libibverbs and librdmacm. The main
# Makefile includes this; rdma-core's headers come from libibverbs-dev and
# librdmacm-dev.
LIB_FOLDERS := verbs/lib verbs/lib/pages verbs/lib/session verbs/lib/datapath verbs/lib/device verbs/lib/memory verbs/lib/cm
LIB_SOURCES := $(wildcard $(LIB_FOLDERS:%=%/*.c))
LIB_HEADERS := $(wildcard $(LIB_FOLDERS:%=%/*.h) verbs/abi/*.h)
LIB_OBJECTS := $(LIB_SOURCES:%.c=build/%.o)
LIB_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror

build/verbs/lib/%.o: verbs/lib/%.c $(LIB_HEADERS)
	@mkdir -p $(@D)
	@echo CC $<; $(CC) $(LIB_CFLAGS) $(CFLAGS) -c $< -o $@

# -z nodelete: fork handlers and interposed calls must outlive a dlclose.
# -z now: binding a symbol in the middle of a page conversion could touch the
# page in flight.
build/liburdma.so: $(LIB_OBJECTS) verbs/lib/liburdma.map
	$(CC) -shared -Wl,-soname,liburdma.so -Wl,--version-script=verbs/lib/liburdma.map \
		-Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,--no-undefined $(LDFLAGS) -o $@ $(LIB_OBJECTS) -lpthread -ldl
