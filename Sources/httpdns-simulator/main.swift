// main.swift -- the program's entry point: only runs the command.

import ArgumentParser

SimulatorCommand.main()
