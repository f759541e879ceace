int run_table(void);
int run_table(void){return 0;}
