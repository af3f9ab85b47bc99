/* The least that a C program can do. Run by hyperfine, it is the yardstick for `bare`.
 *
 * Build: cc -std=c11 -O2 -static -o true true.c
 */
int main(void) { return 0; }
