/* Debian's Python was configured with the Bluetooth headers, which its ssl module does not use:
 * leaving them out spares the build a package.
 */
#include <pyconfig.h>
#undef HAVE_BLUETOOTH_BLUETOOTH_H
