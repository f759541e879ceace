# Registered memory, a part of liburdma.so. Include from the main Makefile and
# link $(PAGES_OBJECTS); $(PAGES_CFLAGS) say how they must be compiled.
PAGES_DIR := verbs/lib/pages
PAGES_SOURCES := $(wildcard $(PAGES_DIR)/*.c $(PAGES_DIR)/kernel/*.c)
PAGES_HEADERS := $(wildcard $(PAGES_DIR)/*.h $(PAGES_DIR)/kernel/*.h)
PAGES_OBJECTS := $(PAGES_SOURCES:$(PAGES_DIR)/%.c=build/pages/%.o)
PAGES_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden \
	-Wall -Wextra -Werror

build/pages/%.o: $(PAGES_DIR)/%.c $(PAGES_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(PAGES_CFLAGS) -c $< -o $@

build/pages/torture: $(PAGES_OBJECTS) $(wildcard $(PAGES_DIR)/testdata/*.[ch])
	$(CC) $(PAGES_CFLAGS) -I$(PAGES_DIR) -rdynamic -pthread -o $@ \
		$(PAGES_OBJECTS) $(PAGES_DIR)/testdata/*.c -ldl

.PHONY: pages-test
pages-test:
	go test ./$(PAGES_DIR)/
