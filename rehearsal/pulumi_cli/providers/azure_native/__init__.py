"""azure-native for the rehearsal: resources and functions of the program, as calls of Azure Resource Manager over HTTPS."""
