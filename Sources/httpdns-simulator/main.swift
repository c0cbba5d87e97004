// main.swift -- the program's entry: nothing but the command.

import ArgumentParser

SimulatorCommand.main()
